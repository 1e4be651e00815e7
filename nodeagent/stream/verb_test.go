package stream

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"virtstack.io/virtstack/nodeagent/link"
)

func put(t *testing.T, url string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodPut, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestVerbsReachTheLauncherOfThatVMI(t *testing.T) {
	var asked types.UID
	verbs := map[string]Verb{
		"pause":   func(_ context.Context, pod types.UID) error { asked = pod; return nil },
		"unpause": func(context.Context, types.UID) error { return errors.New("it is defined") },
	}
	_, url, _ := serveWith(t, nil, verbs)
	for path, want := range map[string]int{
		"web/pause":       http.StatusAccepted,
		"web/unpause":     http.StatusInternalServerError,
		"web/reset":       http.StatusNotFound,
		"nobody/pause":    http.StatusNotFound,
		"elsewhere/pause": http.StatusConflict,
		"starting/pause":  http.StatusConflict,
		"podless/pause":   http.StatusConflict,
	} {
		asked = ""
		if got := put(t, url+path); got != want || (asked == "web-pod") != (want == http.StatusAccepted) {
			t.Errorf("%s: got %d, want %d; Pod %q was asked", path, got, want, asked)
		}
	}
}

func TestALauncherThatIsNotListenedToIsNotAsked(t *testing.T) {
	for name, ask := range Verbs(&link.Launchers{}) {
		if err := ask(t.Context(), "web-pod"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
