package bundle

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
	"virtstack.io/virtstack/controllers/bundle/receiver"
)

const hookToken = "canary-token-0123456789"

// receiver serves webhooks with the rights of virt-bundles.
func (x *tenant) receiver() *httptest.Server {
	r := &receiver.Receiver{
		Bundles: x.controller.client, Write: x.controller.client, Annotation: plan.RequestedAt,
		As:  func(b *v1alpha1.Bundle) (client.Client, error) { return x.controller.as(b.Namespace, accountOf(b)) },
		Now: func() time.Time { return x.now },
	}
	s := httptest.NewServer(r.Server("").Handler)
	x.t.Cleanup(s.Close)
	return s
}

// post sends what GitHub sends.
func post(t *testing.T, url, body, token string) (status int, answer string, took time.Duration) {
	t.Helper()
	m := hmac.New(sha256.New, []byte(token))
	_, _ = m.Write([]byte(body))
	q, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(m.Sum(nil)))
	begin := time.Now()
	got, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(text), time.Since(begin)
}

func (x *tenant) requested() string {
	x.t.Helper()
	b := &v1alpha1.Bundle{}
	if err := x.Client.Get(x.t.Context(), client.ObjectKeyFromObject(x.bundle), b); err != nil {
		x.t.Fatal(err)
	}
	return b.Annotations[plan.RequestedAt]
}

// A webhook makes a Bundle look, whatever its body says: what is applied is what the source has (threat G6).
func TestWebhooks(t *testing.T) {
	x := start(t)
	hash := x.repo.Commit("a.yaml", settings("a", "one"))
	x.bundle.Spec.Receiver = &v1alpha1.BundleReceiver{Type: v1alpha1.ReceiverGitHub, SecretRef: v1alpha1.LocalObjectReference{Name: "hook"}}
	x.create(x.bundle)
	b := x.settle()
	x.ready(b, "main@sha1:"+hash) // no receiver is no reason not to apply
	if status, reason, message := condition(b, "Receiving"); status != metav1.ConditionFalse || !strings.Contains(message, "spec.receiver.secretRef: reading Secret "+x.namespace+"/hook") {
		t.Errorf("Receiving is %s %s: %s", status, reason, message)
	}
	s := x.secret("hook", map[string][]byte{"token": []byte("canary-short")})
	hook := x.receiver().URL + receiver.Path(x.bundle)
	if status, _, _ := post(t, hook, "{}", "canary-short"); status != http.StatusUnauthorized {
		t.Errorf("a short token: %d", status)
	}
	x.now = x.now.Add(10 * time.Minute)
	if _, _, message := condition(x.settle(), "Receiving"); !strings.Contains(message, "at least 16 bytes") {
		t.Errorf("Receiving: %s", message)
	}
	s.Data["token"] = []byte(hookToken)
	x.update(s)
	if status, _, message := condition(x.settle(), "Receiving"); status != metav1.ConditionTrue || !strings.Contains(message, "/hook/"+x.namespace+"/apps") {
		t.Errorf("Receiving is %s: %s", status, message)
	}
	x.repo.Git("checkout", "-q", "-b", "evil")
	evil := x.repo.Commit("a.yaml", settings("a", "evil"))
	x.repo.Git("checkout", "-q", "main")
	body := `{"ref": "refs/heads/evil", "after": "` + evil + `"}`
	if status, answer, _ := post(t, hook, body, hookToken); status != http.StatusAccepted || answer != "" {
		t.Fatalf("got %d %s", status, answer)
	}
	first := x.requested()
	if first == "" {
		t.Fatal("nothing was asked for")
	}
	x.now = x.now.Add(time.Millisecond)
	if status, _, _ := post(t, hook, body, hookToken); status != http.StatusAccepted || x.requested() == first {
		t.Errorf("the second request: %d, %s after %s", status, x.requested(), first)
	}
	x.ready(x.settle(), "main@sha1:"+hash)
	x.holds("a", "one")
	x.quiet("webhooks")
}

// Strangers can't tell a Bundle that is there from one that is not, nor what is wrong with theirs, and write nothing.
func TestStrangersLearnNothing(t *testing.T) {
	x := start(t)
	x.secret("hook", map[string][]byte{"token": []byte(hookToken)})
	x.bundle.Spec.Receiver = &v1alpha1.BundleReceiver{Type: v1alpha1.ReceiverGitHub, SecretRef: v1alpha1.LocalObjectReference{Name: "hook"}}
	x.create(x.bundle)
	y := x.beside("deaf")
	y.bundle.Spec.Receiver = nil
	y.create(y.bundle)
	url := x.receiver().URL + "/hook/"
	const refused = "no such receiver, or a wrong signature\n"
	for name, path := range map[string]string{"a wrong token": x.namespace + "/apps", "no receiver": x.namespace + "/deaf", "no Bundle": x.namespace + "/none", "no namespace": "none/none", "no name": "..%2f/Apps"} {
		status, answer, took := post(t, url+path, "{}", "canary-other-0123456789")
		if status != http.StatusUnauthorized || answer != refused || took < time.Second {
			t.Errorf("%s: got %d %q after %s", name, status, answer, took)
		}
	}
	if status, _, _ := post(t, url+x.namespace+"/apps", strings.Repeat("x", 5<<20), hookToken); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d", status)
	}
	got, err := http.Get(url + x.namespace + "/apps")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a GET: %d", got.StatusCode)
	}
	if x.requested() != "" {
		t.Error("something was asked for")
	}
}

// What comes in too great a number is turned away before anything is looked at.
func TestTooManyRequests(t *testing.T) {
	x := start(t)
	url := x.receiver().URL + "/hook/none/none"
	answers := make(chan int)
	for range 40 {
		go func() {
			got, err := http.Post(url, "", strings.NewReader("{}"))
			if err != nil {
				answers <- 0
				return
			}
			_ = got.Body.Close()
			answers <- got.StatusCode
		}()
	}
	count := map[int]int{}
	for range 40 {
		count[<-answers]++
	}
	if count[http.StatusUnauthorized] > 20 || count[http.StatusTooManyRequests] < 20 || count[0] > 0 {
		t.Errorf("answers: %v", count)
	}
}
