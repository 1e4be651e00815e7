package render

import (
	"encoding/base64"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"
)

func label(u *unstructured.Unstructured, labels map[string]string) {
	all := map[string]string{"app.kubernetes.io/managed-by": "virt-operator", "app.kubernetes.io/component": "kubevirt"}
	maps.Copy(all, u.GetLabels())
	maps.Copy(all, labels)
	u.SetLabels(all)
}

// settle gives the Pods of a workload the placement, pull policy and pull secrets that the KubeVirt asks for.
func settle(u *unstructured.Unstructured, kv *v1.KubeVirt) error {
	var where *v1.ComponentConfig
	switch u.GetKind() {
	case "Deployment":
		where = kv.Spec.Infra
	case "DaemonSet":
		where = kv.Spec.Workloads
	default:
		return nil
	}
	raw, _, err := unstructured.NestedMap(u.Object, "spec", "template", "spec")
	if err != nil {
		return err
	}
	var pod corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &pod); err != nil {
		return err
	}
	if where != nil && where.NodePlacement != nil {
		place(&pod, *where.NodePlacement)
	}
	pod.ImagePullSecrets = append(pod.ImagePullSecrets, kv.Spec.ImagePullSecrets...)
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			if kv.Spec.ImagePullPolicy != "" {
				containers[i].ImagePullPolicy = kv.Spec.ImagePullPolicy
			}
		}
	}
	return merge(u, pod)
}

func place(pod *corev1.PodSpec, p v1.NodePlacement) {
	if len(p.NodeSelector) > 0 {
		all := maps.Clone(pod.NodeSelector)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, p.NodeSelector)
		pod.NodeSelector = all
	}
	if p.Affinity != nil {
		pod.Affinity = p.Affinity
	}
	pod.Tolerations = append(pod.Tolerations, p.Tolerations...)
}

// merge writes back the fields that settle may change, and only where they are set: a whole PodSpec has zero values
// that the manifest doesn't.
func merge(u *unstructured.Unstructured, pod corev1.PodSpec) error {
	changed := corev1.PodSpec{
		NodeSelector: pod.NodeSelector, Affinity: pod.Affinity, Tolerations: pod.Tolerations, ImagePullSecrets: pod.ImagePullSecrets,
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&changed)
	if err != nil {
		return err
	}
	for _, field := range []string{"nodeSelector", "affinity", "tolerations", "imagePullSecrets"} {
		if v, ok := raw[field]; ok {
			if err := unstructured.SetNestedField(u.Object, v, "spec", "template", "spec", field); err != nil {
				return err
			}
		}
	}
	for field, containers := range map[string][]corev1.Container{"initContainers": pod.InitContainers, "containers": pod.Containers} {
		if err := pullPolicies(u, field, containers); err != nil {
			return err
		}
	}
	return nil
}

func pullPolicies(u *unstructured.Unstructured, field string, containers []corev1.Container) error {
	list, found, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", field)
	if err != nil || !found {
		return err
	}
	for i, c := range list {
		if policy := containers[i].ImagePullPolicy; policy != "" {
			c.(map[string]any)["imagePullPolicy"] = string(policy)
		}
	}
	return unstructured.SetNestedSlice(u.Object, list, "spec", "template", "spec", field)
}

// trust puts the CA bundle where the API server looks for it.
func trust(u *unstructured.Unstructured, bundle []byte) error {
	encoded := base64.StdEncoding.EncodeToString(bundle)
	switch u.GetKind() {
	case "APIService":
		if err := unstructured.SetNestedField(u.Object, encoded, "spec", "caBundle"); err != nil {
			return fmt.Errorf("setting the CA bundle: %w", err)
		}
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		hooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, h := range hooks {
			if err := unstructured.SetNestedField(h.(map[string]any), encoded, "clientConfig", "caBundle"); err != nil {
				return fmt.Errorf("setting the CA bundle: %w", err)
			}
		}
		return unstructured.SetNestedSlice(u.Object, hooks, "webhooks")
	}
	return nil
}
