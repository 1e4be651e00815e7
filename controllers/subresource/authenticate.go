package subresource

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
)

// The ConfigMap in which kube-apiserver says how its front proxy shows itself and whom it speaks for.
const (
	frontProxyConfigMap = "extension-apiserver-authentication"
	frontProxyCA        = "requestheader-client-ca-file"
)

// FrontProxy authenticates by the headers of the API server's front proxy, and only on connections whose client
// certificate is of the front proxy's CA and carries one of the names that are allowed. Neither tokens nor client
// certificates of users count: whoever calls virt-api directly is nobody.
type FrontProxy struct {
	authenticator.Request
	ca      *dynamiccertificates.ConfigMapCAController
	headers *headerrequest.RequestHeaderAuthRequestController
}

// NewFrontProxy reads nothing yet; nobody is authenticated before Start has.
func NewFrontProxy(kube kubernetes.Interface) (*FrontProxy, error) {
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("front-proxy", metav1.NamespaceSystem, frontProxyConfigMap, frontProxyCA, kube)
	if err != nil {
		return nil, fmt.Errorf("watching the front proxy's CA: %w", err)
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(frontProxyConfigMap, metav1.NamespaceSystem, kube,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")
	provide := func(f func() []string) headerrequest.StringSliceProvider {
		return headerrequest.StringSliceProviderFunc(f)
	}
	request := headerrequest.NewDynamicVerifyOptionsSecure(ca.VerifyOptions, provide(headers.AllowedClientNames),
		provide(headers.UsernameHeaders), provide(headers.UIDHeaders), provide(headers.GroupHeaders), provide(headers.ExtraHeaderPrefixes))
	return &FrontProxy{Request: request, ca: ca, headers: headers}, nil
}

// Ready returns an error as long as nobody can be authenticated.
func (f *FrontProxy) Ready(*http.Request) error {
	if _, ok := f.ca.VerifyOptions(); !ok || len(f.headers.UsernameHeaders()) == 0 {
		return errors.New("ConfigMap " + frontProxyConfigMap + " has not been read")
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every instance authenticates.
func (f *FrontProxy) NeedLeaderElection() bool { return false }

// Start reads the configuration and follows its changes until ctx ends.
func (f *FrontProxy) Start(ctx context.Context) error {
	go f.headers.Run(ctx, 1)
	f.ca.Run(ctx, 1)
	return nil
}

func (s *Server) authenticate(r *http.Request) (user.Info, error) {
	answer, ok, err := s.Authenticator.AuthenticateRequest(r)
	if err != nil || !ok || answer.User.GetName() == "" {
		if err != nil {
			s.Log.V(1).Info("refusing a caller", "from", r.RemoteAddr, "error", err.Error())
		}
		return nil, apierrors.NewUnauthorized("request is not authenticated")
	}
	return answer.User, nil
}

// userKey is the key of a caller's name in the context of a request.
type userKey struct{}

// from returns the request with the name of its caller.
func from(r *http.Request, who user.Info) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), userKey{}, who.GetName()))
}

// userOf returns the name of the caller.
func userOf(ctx context.Context) string {
	name, _ := ctx.Value(userKey{}).(string)
	return name
}
