package bundle

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

// What a commit makes Secrets of is in the Secrets, and nowhere that a Bundle's readers look: not in its status, not in
// events (threat G5). Round's error, which is logged, would end settle.
func TestSecretsAreNotTold(t *testing.T) {
	x := start(t)
	const generate = "resources: []\nsecretGenerator:\n- name: login\n  literals: [user=canary-user]\n  envs: [login.env]\n  files: [key.pem]\n"
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(x.repo.Dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("login.env", "password=canary-password\n")
	write("key.pem", "canary-key\n")
	hash := x.repo.Commit("kustomization.yaml", generate)
	x.create(x.bundle)
	x.ready(x.settle(), "main@sha1:"+hash)
	var list corev1.SecretList
	if err := x.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, s := range list.Items {
		if s.Namespace == x.namespace && string(s.Data["password"]) == "canary-password" && string(s.Data["user"]) == "canary-user" {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d Secrets hold what the commit says, want 1", made)
	}
	x.quiet("applied")

	for name, change := range map[string]func(){
		"an env file that is no text": func() { write("login.env", "password=canary-password\xff\n") },
		"a key that can't be one":     func() { write("login.env", "pass word!=canary-password\n") },
		"a type it doesn't fit":       func() { write("kustomization.yaml", generate+"  type: kubernetes.io/dockerconfigjson\n") },
		"data that are no map": func() {
			write("kustomization.yaml", "resources: [s.yaml]\n")
			write("s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: canary-data\n")
		},
		"data that are no base64": func() {
			write("kustomization.yaml", "resources: [s.yaml]\n")
			write("s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {p: canary-data!}\n")
		},
	} {
		write("login.env", "password=canary-password\n")
		write("kustomization.yaml", generate)
		change()
		x.repo.CommitAll()
		b := x.settle()
		if status, reason, message := condition(b, "Ready"); status != "False" {
			t.Errorf("%s: Ready is %s %s: %s", name, status, reason, message)
		}
		x.quiet(name)
	}
}

// quiet fails if the Bundle's status or an event holds a canary.
func (x *tenant) quiet(what string) {
	x.t.Helper()
	status, err := json.Marshal(x.settle().Status)
	if err != nil {
		x.t.Fatal(err)
	}
	said := []string{string(status)}
	for recorder := x.controller.events.(*events.FakeRecorder); len(recorder.Events) > 0; {
		said = append(said, <-recorder.Events)
	}
	for _, s := range said {
		if strings.Contains(s, "canary") {
			x.t.Errorf("%s: told: %s", what, s)
		}
	}
}
