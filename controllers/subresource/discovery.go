package subresource

import (
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/kube/buildid"
	"virtstack.io/virtstack/machine/release"
)

// page answers a path that needs no rights.
type page func(*Server, http.ResponseWriter, *http.Request)

// public returns the page at a path that anyone may read; only GET is public.
func public(r *http.Request) (page, bool) {
	if r.Method != http.MethodGet {
		return nil, false
	}
	p, ok := pages[r.URL.Path]
	if !ok && len(r.URL.Path) > 1 {
		p, ok = pages[strings.TrimSuffix(r.URL.Path, "/")]
	}
	return p, ok
}

var pages = publicPages()

func publicPages() map[string]page {
	all := map[string]page{
		"/":           static(metav1.RootPaths{Paths: roots()}),
		"/apis":       static(groups()),
		base:          static(served()),
		"/healthz":    (*Server).healthz,
		"/livez":      static(map[string]string{"status": "ok"}),
		"/openapi/v2": static(openAPI()),
		"/openapi/v3": static(map[string]any{"paths": map[string]any{}}),
	}
	for _, v := range versions {
		all[base+"/"+v] = static(resources(v))
		all[base+"/"+v+"/version"] = (*Server).version
		all[base+"/"+v+"/healthz"] = (*Server).healthz
		all["/openapi/v3/apis/"+group+"/"+v] = static(map[string]any{
			"openapi": "3.0.0", "info": openAPI()["info"], "paths": map[string]any{},
		})
	}
	return all
}

func static(v any) page {
	body, err := json.Marshal(v)
	return func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			writeError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the client is gone: there is nobody to tell
	}
}

func roots() []string {
	paths := []string{"/apis", base}
	for _, v := range versions {
		paths = append(paths, base+"/"+v)
	}
	return append(paths, "/healthz", "/openapi/v2", "/openapi/v3")
}

func served() metav1.APIGroup {
	g := metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
		// Clients of KubeVirt know the group by this name here, one letter short of the real one.
		Name:                       "subresource.kubevirt.io",
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0"}},
	}
	for _, v := range versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + v, Version: v})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

func groups() metav1.APIGroupList {
	return metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{served()}}
}

func resources(version string) metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: group + "/" + version,
	}
	for _, r := range Routes {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.Name(), Namespaced: true, Verbs: metav1.Verbs{}})
	}
	return list
}

// openAPI has no paths: the verbs take hand-made options that clients know. It is there because kube-apiserver asks
// each aggregated server for one.
func openAPI() map[string]any {
	return map[string]any{
		"swagger": "2.0",
		"info":    map[string]any{"title": group, "version": release.Version},
		"paths":   map[string]any{},
	}
}

// version tells which build answers.
func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, release.Info(buildid.Own()))
}

// healthz says whether the API server answers. It is for people: the Pod's probes ask elsewhere, so that a control
// plane that is down takes no console with it.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	if err := s.Reach(r.Context()); err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"apiserver": map[string]string{"connectivity": "ok"}})
}
