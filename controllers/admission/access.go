package admission

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"virtstack.io/virtstack/machine/validate"
)

// Access answers whether a user may do something, and why not.
type Access func(context.Context, authorization.SubjectAccessReviewSpec) (bool, string, error)

// readable refuses a machine whose guest would read what the user who asks for it may not: a VM is no way around the
// rights on Secrets. What the machine read before isn't asked again; our components act for who was asked.
func readable(ctx context.Context, r *admissionv1.AdmissionRequest, may Access) (field.ErrorList, error) {
	if slices.Contains(labelers, r.UserInfo.Username) {
		return nil, nil
	}
	kind := schema.GroupKind{Group: r.Kind.Group, Kind: r.Kind.Kind}
	wanted, err := validate.Reads(kind, r.Object.Raw)
	if err != nil {
		return nil, err
	}
	had := map[string]bool{}
	if r.Operation == admissionv1.Update {
		before, err := validate.Reads(kind, r.OldObject.Raw)
		if err != nil {
			before = nil // it no longer fits its type: everything is asked
		}
		for _, one := range before {
			had[one.Resource+"/"+one.Name] = true
		}
	}
	var errs field.ErrorList
	for _, one := range wanted {
		if had[one.Resource+"/"+one.Name] {
			continue
		}
		asked := attributes(r, one)
		ok, why, err := may(ctx, authorization.SubjectAccessReviewSpec{
			User: r.UserInfo.Username, Groups: r.UserInfo.Groups, UID: r.UserInfo.UID, Extra: extra(r), ResourceAttributes: asked,
		})
		if err != nil {
			return nil, fmt.Errorf("asking whether %s may %s %s: %w", r.UserInfo.Username, asked.Verb, one.Resource, err)
		}
		if !ok {
			errs = append(errs, field.Forbidden(one.Path, fmt.Sprintf("%q: the guest could read it, but %s may not %s %s of that name: "+
				"get that right, or name another. %s", one.Name, r.UserInfo.Username, asked.Verb, one.Resource, why)))
		}
	}
	return errs, nil
}

// attributes of reading; a guest with a service account's token acts as that account.
func attributes(r *admissionv1.AdmissionRequest, one validate.Read) *authorization.ResourceAttributes {
	a := &authorization.ResourceAttributes{Namespace: r.Namespace, Verb: "get", Version: "v1", Resource: one.Resource, Name: one.Name}
	if one.Resource == "serviceaccounts" {
		a.Verb, a.Subresource = "create", "token"
	}
	return a
}

func extra(r *admissionv1.AdmissionRequest) map[string]authorization.ExtraValue {
	all := map[string]authorization.ExtraValue{}
	for key, values := range r.UserInfo.Extra {
		all[key] = authorization.ExtraValue(values)
	}
	return all
}
