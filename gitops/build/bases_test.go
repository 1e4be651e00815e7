package build_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"virtstack.io/virtstack/gitops/build"
)

// server has commits of repositories, by URL and commit, and counts what is fetched and not closed.
type server struct {
	has     map[string]fs.FS
	fetched []string
	open    int
}

type base struct {
	fs.FS
	of *server
}

func (b base) Tree() fs.FS  { return b.FS }
func (b base) Close() error { b.of.open--; return nil }

var errAway = errors.New("the server is away")

func (s *server) fetch(url, commit string) (build.Base, error) {
	s.fetched = append(s.fetched, url+"@"+commit)
	if f, ok := s.has[url+"@"+commit]; ok {
		s.open++
		return base{f, s}, nil
	}
	return nil, errAway
}

const one, two = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"

func from(entries ...string) fs.FS {
	return files("k/kustomization.yaml", "resources: ['"+strings.Join(entries, "', '")+"']\nnamePrefix: p-\n")
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

func TestRemoteBases(t *testing.T) {
	const team, deep = "https://git.example.test/team/base", "https://git.example.test/team/deep.git"
	has := map[string]fs.FS{
		team + "@" + one: files("kustomization.yaml", "resources: [a.yaml]\n", "a.yaml", configMap("a"), "vms/kustomization.yaml", "resources: [../a.yaml, b.yaml]\n", "vms/b.yaml", configMap("b"),
			"out/kustomization.yaml", "resources: [../../../../../../k/kustomization.yaml]\n", "evil/kustomization.yaml", "resources: ['https://elsewhere.example.test/x?ref="+one+"']\n",
			"moving/kustomization.yaml", "resources: ['"+team+"?ref=main']\n"),
		deep + "@" + two: files("kustomization.yaml", "resources: ['"+team+"//vms?ref="+one+"', d.yaml]\n", "d.yaml", configMap("d")),
	}
	for name, tc := range map[string]struct {
		allowed []string
		files   fs.FS
		want    string // names of objects, or what the error says
		fetches int
	}{
		"a base":                {[]string{"https://git.example.test/team"}, from(team + "?ref=" + one), "p-a", 1},
		"a directory of it":     {[]string{team}, from(team + "//vms?ref=" + one), "p-a p-b", 1},
		"with local ones":       {[]string{team}, files("k/kustomization.yaml", "resources: [l.yaml, '"+team+"?ref="+one+"']\n", "k/l.yaml", configMap("l")), "l a", 1},
		"as a component":        {[]string{team}, files("k/kustomization.yaml", "components: ['"+team+"//c?ref="+one+"']\n"), "no directory", 1},
		"a base of a base":      {[]string{"https://git.example.test"}, from(deep + "?ref=" + two), "p-a p-b p-d", 2},
		"twice, fetched once":   {[]string{team}, files("k/kustomization.yaml", "resources: [x, z]\n", "k/x/kustomization.yaml", "namePrefix: x-\nresources: ['"+team+"?ref="+one+"']\n", "k/z/kustomization.yaml", "namePrefix: z-\nresources: ['"+team+"?ref="+one+"']\n"), "x-a z-a", 1},
		"in the root":           {[]string{team}, files("kustomization.yaml", "resources: ['"+team+"?ref="+one+"']\n", "k/kustomization.yaml", "resources: [..]\n"), "a", 1},
		"none is allowed":       {nil, from(team + "?ref=" + one), "is remote", 0},
		"another is allowed":    {[]string{"https://git.example.test/team/bas"}, from(team + "?ref=" + one), "--allow-remote-bases", 0},
		"another host":          {[]string{"https://git.example.test"}, from("https://git.example.test.evil.test/team/base?ref=" + one), "is remote", 0},
		"the host as a user":    {[]string{"https://git.example.test"}, from("https://git.example.test@evil.test/team/base?ref=" + one), "is remote", 0},
		"a way out of the path": {[]string{"https://git.example.test/team"}, from("https://git.example.test/team/../other/base?ref=" + one), "is remote", 0},
		"http isn't https":      {[]string{"https://git.example.test"}, from("http://git.example.test/team/base?ref=" + one), "is remote", 0},
		"ssh":                   {[]string{"https://git.example.test"}, from("git@git.example.test:team/base?ref=" + one), "is remote", 0},
		"a branch":              {[]string{team}, from(team + "?ref=main"), `ref is "main", want a whole commit`, 0},
		"no ref":                {[]string{team}, from(team + "//vms"), `ref is "", want a whole commit`, 0},
		"a short commit":        {[]string{team}, from(team + "?ref=1111111"), "want a whole commit", 0},
		"no such directory":     {[]string{team}, from(team + "//nowhere?ref=" + one), `no directory "nowhere"`, 1},
		"out of the base":       {[]string{team}, from(team + "//out?ref=" + one), "leads out of the repository", 1},
		"a base's own remote":   {[]string{team}, from(team + "//evil?ref=" + one), "is remote", 1},
		"a base's own branch":   {[]string{team}, from(team + "//moving?ref=" + one), "want a whole commit", 1},
		"the place is taken":    {[]string{team}, files("k/kustomization.yaml", "resources: ['"+team+"?ref="+one+"']\n", ".bases/x", ""), "another name", 0},
		"the server is away":    {[]string{team}, from(team + "?ref=" + two), "the server is away", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{has: has}
			all, err := build.Overlaid(t.Context(), tc.files, "k", build.DefaultLimits, build.Overlay{Bases: build.Bases{Allowed: tc.allowed, Fetch: s.fetch}})
			got := ""
			for _, o := range all {
				got += " " + o.GetName()
			}
			switch {
			case err == nil && got != " "+tc.want, err != nil && !strings.Contains(err.Error(), tc.want):
				t.Errorf("got%s %v, want %s", got, err, tc.want)
			case err != nil && errors.Is(err, build.ErrRefused) == errors.Is(err, errAway):
				t.Errorf("refused for ever: %v, which is wrong: %v", errors.Is(err, build.ErrRefused), err)
			}
			if len(s.fetched) != tc.fetches || s.open != 0 {
				t.Errorf("fetched %v, of which %d are open still", s.fetched, s.open)
			}
		})
	}
}

func TestOnlySoManyRemoteBases(t *testing.T) {
	s, entries := &server{has: map[string]fs.FS{}}, []string{}
	for i := range 9 {
		url := fmt.Sprintf("https://git.example.test/team/r%d", i)
		entries = append(entries, url+"?ref="+one)
		s.has[url+"@"+one] = files("kustomization.yaml", "resources: [a.yaml]\n", "a.yaml", configMap(fmt.Sprint("a", i)))
	}
	allowed := build.Overlay{Bases: build.Bases{Allowed: []string{"https://git.example.test"}, Fetch: s.fetch}}
	_, err := build.Overlaid(t.Context(), from(entries...), "k", build.DefaultLimits, allowed)
	if err == nil || !strings.Contains(err.Error(), "more than 8") || s.open != 0 {
		t.Errorf("nine commits of others: %v, %d are open still", err, s.open)
	}
	if all, err := build.Overlaid(t.Context(), from(entries[:8]...), "k", build.DefaultLimits, allowed); err != nil || len(all) != 8 {
		t.Errorf("eight: %d, %v", len(all), err)
	}
}

func TestWhatMayBeAllowed(t *testing.T) {
	good := []string{"https://git.example.test", "https://git.example.test/", "https://git.example.test:8443/team/", "http://git.example.test/team/base.git"}
	for _, allowed := range slices.Concat(good, []string{"", "git.example.test", "ssh://git@git.example.test/x", "https://u:p@git.example.test", "https://git.example.test/?a=b", "https://git.example.test/a/../b", "https://git.example.test/a%2fb", "https:///team", "https://git.example.test/#x"}) {
		if err := build.CheckBase(allowed); (err == nil) != slices.Contains(good, allowed) {
			t.Errorf("%q: %v", allowed, err)
		}
	}
}
