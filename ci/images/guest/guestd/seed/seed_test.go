package seed

import (
	"reflect"
	"testing"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		user, meta string
		want       Seed
	}{
		"nothing":                    {},
		"hostname of meta-data":      {meta: "instance-id: i\nlocal-hostname: web\n", want: Seed{Hostname: "web"}},
		"user-data wins":             {user: "hostname: mine\n", meta: "local-hostname: web\n", want: Seed{Hostname: "mine"}},
		"a password of digits":       {user: "#cloud-config\npassword: 1234\nchpasswd: { expire: false }\n", want: Seed{Password: "1234"}},
		"keys of both":               {user: "ssh_authorized_keys: [b]\n", meta: "public-keys: [a]\n", want: Seed{Keys: []string{"a", "b"}}},
		"a named key":                {meta: "public-keys: {0: a}\n", want: Seed{Keys: []string{"a"}}},
		"commands":                   {user: "runcmd:\n- echo a b\n- [ echo, \"it's\", b c ]\n", want: Seed{Script: "echo a b\n'echo' 'it'\\''s' 'b c'\n"}},
		"a command of several lines": {user: "runcmd:\n- |\n  a\n  b\n", want: Seed{Script: "a\nb\n\n"}},
		"a script":                   {user: "#!/bin/sh\ntrue\n", meta: "local-hostname: web\n", want: Seed{Hostname: "web", Script: "#!/bin/sh\ntrue\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tc.user), []byte(tc.meta))
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, tc.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, user := range map[string]string{"bad YAML": "hostname: [", "a command that is a map": "runcmd: [{a: b}]", "a list as name": "hostname: [a]"} {
		if _, err := Parse([]byte(user), nil); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("hostname: a\nruncmd: [a, [b, c]]\n"), []byte("public-keys: {a: b}\n"))
	f.Fuzz(func(_ *testing.T, user, meta []byte) {
		_, _ = Parse(user, meta) // must not panic
	})
}
