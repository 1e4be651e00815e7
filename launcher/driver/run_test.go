package driver_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"virtstack.io/virtstack/launcher/driver"
)

// qga answers as QEMU's guest agent does; the program ends after so many questions, with the answer end.
func qga(t *testing.T, asked *[]string, questions int, end string) driver.Talk {
	return func(message string) (string, error) {
		var m struct {
			Execute   string
			Arguments map[string]any
		}
		if err := json.Unmarshal([]byte(message), &m); err != nil {
			t.Fatal(err)
		}
		*asked = append(*asked, message)
		switch {
		case m.Execute == "guest-ping":
			return `{"return":{}}`, nil
		case m.Execute == "guest-exec":
			return `{"return":{"pid":4711}}`, nil
		case m.Execute != "guest-exec-status" || m.Arguments["pid"] != 4711.0:
			return "", errors.New("unknown: " + message)
		case questions > 0:
			questions--
			return `{"return":{"exited":false}}`, nil
		}
		return `{"return":` + end + `}`, nil
	}
}

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestAProgramOfTheGuestsIsWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		end  string
		want driver.AgentRan
	}{
		"well":     {`{"exited":true,"exitcode":0,"out-data":"` + base64Of("fine\n") + `"}`, driver.AgentRan{Output: "fine\n"}},
		"ill":      {`{"exited":true,"exitcode":3,"err-data":"` + base64Of("no disk") + `"}`, driver.AgentRan{Exit: 3, Output: "no disk"}},
		"killed":   {`{"exited":true,"signal":9}`, driver.AgentRan{Exit: 137}},
		"odd code": {`{"exited":true,"exitcode":4294967040}`, driver.AgentRan{Exit: 255}},
		"odd text": {`{"exited":true,"exitcode":1,"out-data":"////="}`, driver.AgentRan{Exit: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var asked []string
			got, err := driver.Run{Path: "/bin/check", Args: []string{"a b"}}.By(t.Context(), qga(t, &asked, 3, tc.end))
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%s: got %+v, %v; want %+v", name, got, err, tc.want)
			}
			if len(asked) != 5 || !strings.Contains(asked[0], `"arg":["a b"],"capture-output":true,"path":"/bin/check"`) {
				t.Errorf("%s: asked %q", name, asked)
			}
		})
	}
}

func TestAProgramThatDoesntEndIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var asked []string
		start := time.Now()
		_, err := driver.Run{Path: "sleep"}.By(ctx, qga(t, &asked, 1<<30, ""))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"sleep"`) || time.Since(start) != 3*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

func TestAnAgentThatSpeaksNonsenseIsNotBelieved(t *testing.T) {
	for _, answer := range []string{"", "{}", "[]", `{"return":null}`, `{"return":{"pid":"x"}}`, `{"error":{"class":"x"}}`} {
		talk := func(string) (string, error) { return answer, nil }
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got, err := (driver.Run{Path: "x"}).By(ctx, talk); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("%q: got %+v, %v", answer, got, err)
		}
	}
	if err := driver.PingBy(func(string) (string, error) { return `{"return":{}}`, nil }); err != nil {
		t.Errorf("a right answer: %v", err)
	}
	if err := driver.PingBy(func(string) (string, error) { return "", driver.ErrNoAgent }); !errors.Is(err, driver.ErrNoAgent) {
		t.Errorf("no agent: %v", err)
	}
}

func FuzzRun(f *testing.F) {
	f.Add(`{"return":{"pid":1}}`, `{"return":{"exited":true,"exitcode":1,"out-data":"eA==","signal":-7}}`)
	f.Fuzz(func(t *testing.T, started, ended string) {
		first := true
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing that goes on is waited for
		r, err := driver.Run{Path: "x"}.By(ctx, func(string) (string, error) {
			if first {
				first = false
				return started, nil
			}
			return ended, nil
		})
		if err == nil && (r.Exit < 0 || r.Exit > 255 || len(r.Output) > driver.MaxOutput || !utf8.ValidString(r.Output)) {
			t.Errorf("got %+v", r)
		}
	})
}
