package wire

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAProcessIsKilledAtItsWrite(t *testing.T) {
	for name, late := range map[string]bool{"before the write": false, "before its answer": true} {
		t.Run(name, func(t *testing.T) {
			done := ""
			s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { done += r.Method + r.URL.Path + " " }))
			defer s.Close()
			k := &Kill{At: 2, Late: late}
			c := http.Client{Transport: k.Wrap(http.DefaultTransport)}
			send := func(method, path string, lost bool) {
				t.Helper()
				r, err := http.NewRequest(method, s.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := c.Do(r)
				if err == nil {
					resp.Body.Close()
				}
				if errors.Is(err, ErrKilled) != lost || lost != k.Killed() {
					t.Errorf("%s %s: got %v, killed %t", method, path, err, k.Killed())
				}
			}
			send("PATCH", "/1", false)
			send("GET", "/", false)
			send("PATCH", "/?dryRun=All", false)
			send("DELETE", "/2", true)
			send("GET", "/", true)
			want := "PATCH/1 GET/ PATCH/ "
			if late {
				want += "DELETE/2 "
			}
			if done != want {
				t.Errorf("the server saw %q, want %q", done, want)
			}
		})
	}
}
