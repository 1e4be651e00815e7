package v1alpha1

// BundleSource is a union: exactly one of its fields is set.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type BundleSource struct {
	// Git is a repository reached over HTTP, HTTPS or SSH.
	// +optional
	Git *GitSource `json:"git,omitempty"`

	// OCI is an artifact in a registry.
	// +optional
	OCI *OCISource `json:"oci,omitempty"`

	// SourceRef names a source that Flux fetches.
	// +optional
	SourceRef *SourceReference `json:"sourceRef,omitempty"`
}

// GitSource names a commit of a Git repository.
type GitSource struct {
	// URL of the repository: http, https or ssh, without a password or token, which belong into secretRef. An ssh URL may
	// hold a user (ssh://git@example.com/vms.git); absent: git.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https', 'ssh']",message="must be a URL that starts with http://, https:// or ssh://"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https?://[^/]*@') && !self.matches('^ssh://[^/@]*:[^/@]*@')",message="must not contain credentials: put them into the Secret that secretRef names"
	URL string `json:"url"`

	// Ref is the commit to apply, or what to follow to find it.
	Ref GitRef `json:"ref"`

	// SecretRef names a Secret in the Bundle's namespace. For http and https it has the keys username and password, or
	// bearerToken, and optionally ca.crt (PEM), tls.crt and tls.key; for ssh identity (a private key), known_hosts, and
	// password if the key has a passphrase. Absent: the repository is public.
	// +optional
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`

	// Verify makes a signature a condition: nothing of a commit that none of the keys has signed is applied.
	// +optional
	Verify *GitVerification `json:"verify,omitempty"`
}

// GitRef says what is followed. Of several that are set, commit goes before name, name before semver, semver before
// tag, tag before branch; a commit with a branch must be on it.
//
// +kubebuilder:validation:XValidation:rule="has(self.branch) || has(self.tag) || has(self.semver) || has(self.name) || has(self.commit)",message="at least one of branch, tag, semver, name and commit must be set"
type GitRef struct {
	// Branch is followed to its newest commit.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Branch string `json:"branch,omitempty"`

	// Tag is followed to the commit it points at.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Tag string `json:"tag,omitempty"`

	// SemVer is a range (">=1.2.0 <2.0.0", "1.x"); the highest tag inside it is followed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	SemVer string `json:"semver,omitempty"`

	// Name is a ref by its full name (refs/heads/main, refs/tags/v1, refs/pull/7/head); it is followed.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^refs/[^/].*[^/]$`
	Name string `json:"name,omitempty"`

	// Commit is the full hash: 40 lower-case hexadecimal digits, or 64 in a SHA-256 repository.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}|[0-9a-f]{64})$`
	Commit string `json:"commit,omitempty"`
}

// VerifyMode says which objects of Git have to be signed.
//
// +kubebuilder:validation:Enum=HEAD;Tag;TagAndHEAD
type VerifyMode string

const (
	// VerifyHEAD is the commit.
	VerifyHEAD VerifyMode = "HEAD"
	// VerifyTag is the annotated tag that ref names or semver chose.
	VerifyTag VerifyMode = "Tag"
	// VerifyTagAndHEAD is both.
	VerifyTagAndHEAD VerifyMode = "TagAndHEAD"
)

// GitVerification says who has to have signed. Exactly one of secretRef and configMapRef is set; each key of the object
// ends in .asc (an armored GPG public key ring) or .sshpub (SSH public keys, as in authorized_keys).
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.configMapRef)",message="exactly one of secretRef and configMapRef must be set"
type GitVerification struct {
	// Mode says what has to be signed. Absent: HEAD.
	// +optional
	Mode VerifyMode `json:"mode,omitempty"`

	// SecretRef names a Secret in the Bundle's namespace.
	// +optional
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`

	// ConfigMapRef names a ConfigMap in the Bundle's namespace.
	// +optional
	ConfigMapRef *LocalObjectReference `json:"configMapRef,omitempty"`
}

// OCISource names an artifact in a registry: one layer of it, a gzipped tar, is the tree.
type OCISource struct {
	// URL of the repository, without tag or digest: oci://registry.example.com/team/vms.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^oci://[^/@]+/[^@]+$`
	URL string `json:"url"`

	// Ref is the artifact to apply, or what to follow to find it.
	Ref OCIRef `json:"ref"`

	// LayerMediaType chooses the first layer of this media type. Absent: the first one whose media type is a gzipped tar,
	// Flux's application/vnd.cncf.flux.content.v1.tar+gzip among them.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	LayerMediaType string `json:"layerMediaType,omitempty"`

	// SecretRef names a pull secret (type kubernetes.io/dockerconfigjson) in the Bundle's namespace. Absent: the
	// repository is public.
	// +optional
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`

	// CertSecretRef names a Secret in the Bundle's namespace with ca.crt (PEM), the authority of the registry's
	// certificate. Absent: those that the image of virt-bundles brings.
	// +optional
	CertSecretRef *LocalObjectReference `json:"certSecretRef,omitempty"`

	// Insecure allows plain HTTP. Credentials are never sent over it.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
}

// OCIRef says what is followed. Of several that are set, digest goes before semver, semver before tag.
//
// +kubebuilder:validation:XValidation:rule="has(self.tag) || has(self.semver) || has(self.digest)",message="at least one of tag, semver and digest must be set"
type OCIRef struct {
	// Tag is followed.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`
	Tag string `json:"tag,omitempty"`

	// SemVer is a range (">=1.2.0 <2.0.0", "1.x"); the highest tag inside it is followed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	SemVer string `json:"semver,omitempty"`

	// Digest is that of the manifest.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`
}

// SourceKind is a kind of Flux's source.toolkit.fluxcd.io.
//
// +kubebuilder:validation:Enum=GitRepository;OCIRepository;Bucket;ExternalArtifact
type SourceKind string

// The kinds that hold an artifact whose files are a tree.
const (
	GitRepository    SourceKind = "GitRepository"
	OCIRepository    SourceKind = "OCIRepository"
	Bucket           SourceKind = "Bucket"
	ExternalArtifact SourceKind = "ExternalArtifact"
)

// SourceReference names a source of Flux. The Bundle's account has to have the right to get it.
type SourceReference struct {
	// Kind of the source.
	Kind SourceKind `json:"kind"`

	// Name of the source.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the source. Another one than the Bundle's is refused, unless virt-bundles runs with
	// --no-cross-namespace-refs=false. Absent: the Bundle's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// ReceiverType says how a Git server shows that it knows the token.
//
// +kubebuilder:validation:Enum=github;gitlab;gitea;generic-hmac
type ReceiverType string

const (
	// ReceiverGitHub signs the body: header X-Hub-Signature-256.
	ReceiverGitHub ReceiverType = "github"
	// ReceiverGitLab sends the token: header X-Gitlab-Token.
	ReceiverGitLab ReceiverType = "gitlab"
	// ReceiverGitea signs the body: header X-Gitea-Signature. Forgejo does the same.
	ReceiverGitea ReceiverType = "gitea"
	// ReceiverGeneric signs the body: header X-Signature, sha256=<hex> or sha512=<hex>.
	ReceiverGeneric ReceiverType = "generic-hmac"
)

// BundleReceiver lets a Git server ask for a look at the source. It can ask for nothing else.
type BundleReceiver struct {
	// Type says how the server shows that it knows the token.
	Type ReceiverType `json:"type"`

	// SecretRef names a Secret in the Bundle's namespace with key token, of at least 16 bytes.
	SecretRef LocalObjectReference `json:"secretRef"`
}
