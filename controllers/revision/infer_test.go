package revision_test

import (
	"strings"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"
	api "kubevirt.io/api/instancetype"
	"kubevirt.io/api/instancetype/v1beta1"
	cdi "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"virtstack.io/virtstack/controllers/revision"
	"virtstack.io/virtstack/machine/instancetype"
)

// says are the labels of what names the instancetype small of the cluster, or another kind.
func says(kind string) map[string]string {
	return map[string]string{api.DefaultInstancetypeLabel: "small", api.DefaultInstancetypeKindLabel: kind}
}

func claim(ns, name string, labels map[string]string) client.Object {
	return &k8sv1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: labels}}
}

func fromClaim(ns, name string) cdi.DataVolumeSpec {
	return cdi.DataVolumeSpec{Source: &cdi.DataVolumeSource{PVC: &cdi.DataVolumeSourcePVC{Namespace: ns, Name: name}}}
}

func fromSource(ns *string, name string) cdi.DataVolumeSpec {
	return cdi.DataVolumeSpec{SourceRef: &cdi.DataVolumeSourceRef{Kind: "DataSource", Namespace: ns, Name: name}}
}

func dataVolume(labels map[string]string, spec cdi.DataVolumeSpec) client.Object {
	return &cdi.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Labels: labels}, Spec: spec}
}

func dataSource(ns string, labels map[string]string, pvc *cdi.DataVolumeSourcePVC) client.Object {
	return &cdi.DataSource{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "golden", Labels: labels},
		Spec: cdi.DataSourceSpec{Source: cdi.DataSourceSource{PVC: pvc}}}
}

// vm has one volume of each kind and asks one of them for its instancetype.
func vm(volume string, policy v1.InferFromVolumeFailurePolicy, templates ...v1.DataVolumeTemplateSpec) *v1.VirtualMachine {
	out := &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "vm-1"}}
	out.Spec.Instancetype = &v1.InstancetypeMatcher{InferFromVolume: volume, InferFromVolumeFailurePolicy: &policy}
	out.Spec.DataVolumeTemplates = templates
	out.Spec.Template = &v1.VirtualMachineInstanceTemplateSpec{}
	claim := &v1.PersistentVolumeClaimVolumeSource{}
	claim.ClaimName = "claim"
	out.Spec.Template.Spec.Volumes = []v1.Volume{
		{Name: "claim", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: claim}},
		{Name: "data", VolumeSource: v1.VolumeSource{DataVolume: &v1.DataVolumeSource{Name: "data"}}},
		{Name: "image", VolumeSource: v1.VolumeSource{ContainerDisk: &v1.ContainerDiskSource{Image: "localhost/tiny:1"}}},
	}
	return out
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{k8sv1.AddToScheme, v1.AddToScheme, v1beta1.AddToScheme, cdi.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func finder(t *testing.T, objects ...client.Object) revision.Finder {
	t.Helper()
	small := &v1beta1.VirtualMachineClusterInstancetype{ObjectMeta: metav1.ObjectMeta{Name: "small", UID: "small-1"}}
	kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(append(objects, small)...).Build()
	return revision.Finder{Client: kube, Live: kube}
}

const (
	reject = v1.RejectInferFromVolumeFailure
	ignore = v1.IgnoreInferFromVolumeFailure
)

// What a volume says, directly or by what it was copied from: small, nothing that counts (""), or why it can't be told.
func TestInference(t *testing.T) {
	mall := "mall"
	template := func(spec cdi.DataVolumeSpec) v1.DataVolumeTemplateSpec {
		return v1.DataVolumeTemplateSpec{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: spec}
	}
	for name, tc := range map[string]struct {
		vm   *v1.VirtualMachine
		has  []client.Object
		want string
	}{
		"claim":                       {vm("claim", reject), []client.Object{claim("shop", "claim", says(""))}, "small"},
		"claim that says nothing":     {vm("claim", reject), []client.Object{claim("shop", "claim", nil)}, "PersistentVolumeClaim shop/claim: nothing to infer from"},
		"the same, ignored":           {vm("claim", ignore), []client.Object{claim("shop", "claim", nil)}, ""},
		"no claim":                    {vm("claim", reject), nil, `volume "claim": not clear yet: there is no PersistentVolumeClaim shop/claim`},
		"no claim is never ignored":   {vm("claim", ignore), nil, "there is no PersistentVolumeClaim shop/claim"},
		"an unknown kind":             {vm("claim", ignore), []client.Object{claim("shop", "claim", says("Pod"))}, `PersistentVolumeClaim shop/claim: not clear yet: label`},
		"no such volume":              {vm("root", ignore), nil, `volume "root": not clear yet: the VM's template has no such volume`},
		"an image":                    {vm("image", reject), nil, `volume "image": nothing to infer from: it is neither`},
		"an image, ignored":           {vm("image", ignore), nil, ""},
		"DataVolume":                  {vm("data", reject), []client.Object{dataVolume(says(""), cdi.DataVolumeSpec{})}, "small"},
		"DataVolume, its claim left":  {vm("data", reject), []client.Object{claim("shop", "data", says(""))}, "small"},
		"DataVolume of a claim":       {vm("data", reject), []client.Object{dataVolume(nil, fromClaim(mall, "golden")), claim(mall, "golden", says(""))}, "small"},
		"DataVolume of a claim here":  {vm("data", reject), []client.Object{dataVolume(nil, fromClaim("", "golden")), claim("shop", "golden", says(""))}, "small"},
		"DataVolume of no claim":      {vm("data", ignore), []client.Object{dataVolume(nil, fromClaim(mall, "golden"))}, "there is no PersistentVolumeClaim mall/golden"},
		"DataVolume from a registry":  {vm("data", ignore), []client.Object{dataVolume(nil, cdi.DataVolumeSpec{Source: &cdi.DataVolumeSource{}})}, ""},
		"DataSource":                  {vm("data", reject), []client.Object{dataVolume(nil, fromSource(&mall, "golden")), dataSource(mall, says(""), nil)}, "small"},
		"DataSource here":             {vm("data", reject), []client.Object{dataVolume(nil, fromSource(nil, "golden")), dataSource("shop", says(""), nil)}, "small"},
		"DataSource of a claim":       {vm("data", reject), []client.Object{dataVolume(nil, fromSource(&mall, "golden")), dataSource(mall, nil, &cdi.DataVolumeSourcePVC{Name: "image"}), claim(mall, "image", says(""))}, "small"},
		"no DataSource":               {vm("data", ignore), []client.Object{dataVolume(nil, fromSource(&mall, "golden"))}, "there is no DataSource mall/golden"},
		"DataSource without a claim":  {vm("data", reject), []client.Object{dataVolume(nil, fromSource(&mall, "golden")), dataSource(mall, nil, nil)}, "DataSource mall/golden: nothing to infer from"},
		"template":                    {vm("data", reject, template(fromClaim(mall, "golden"))), []client.Object{claim(mall, "golden", says(""))}, "small"},
		"template before DataVolume":  {vm("data", reject, template(fromClaim(mall, "golden"))), []client.Object{claim(mall, "golden", says("")), dataVolume(says("Pod"), cdi.DataVolumeSpec{})}, "small"},
		"the nearest labels count":    {vm("data", reject), []client.Object{dataVolume(says(""), fromClaim(mall, "golden")), claim(mall, "golden", says("Pod"))}, "small"},
		"named, but not there itself": {vm("claim", ignore), []client.Object{claim("shop", "claim", says("VirtualMachineInstancetype"))}, "there is no VirtualMachineInstancetype shop/small"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := finder(t, tc.has...).Find(t.Context(), tc.vm)
			if err != nil {
				t.Fatal(err)
			}
			check(t, found, tc.want)
		})
	}
}

func check(t *testing.T, found instancetype.Found, want string) {
	t.Helper()
	switch {
	case strings.Contains(want, " "):
		if found.Missing == nil || !found.Missing.Infer || !strings.Contains(found.Missing.Message, want) {
			t.Errorf("missing %+v, want %s", found.Missing, want)
		}
	case found.Missing != nil:
		t.Errorf("missing %s, want %q", found.Missing.Message, want)
	case found.Instancetype.Name != want || (want == "") == (found.Choice.Instancetype != nil):
		t.Errorf("recorded %+v, chosen %+v, want %q", found.Instancetype, found.Choice.Instancetype, want)
	}
}

// The template's memory gives way to that of an instancetype that was found where none needed to be.
func TestIgnoringClearsMemory(t *testing.T) {
	f := finder(t, claim("shop", "claim", says("")))
	for policy, want := range map[v1.InferFromVolumeFailurePolicy]bool{reject: false, ignore: true} {
		found, err := f.Find(t.Context(), vm("claim", policy))
		if err != nil || found.Choice.ClearMemory != want {
			t.Errorf("%s: clears memory %t, want %t; %v", policy, found.Choice.ClearMemory, want, err)
		}
	}
}
