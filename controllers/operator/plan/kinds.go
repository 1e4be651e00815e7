package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// Older says that a CRD's release is older than a program's, "" if it isn't. A patch release needs no other CRDs; of a
// later release they serve as well.
func Older(crd, program string) string {
	want, err := version.ParseSemantic(program)
	if err != nil {
		return fmt.Sprintf("can't be compared: this operator is of release %q, which is no version", program)
	}
	need := fmt.Sprintf("this operator needs those of v%d.%d", want.Major(), want.Minor())
	has, err := version.ParseSemantic(crd)
	switch {
	case err != nil:
		return "is of no release; " + need
	case has.Major() < want.Major() || has.Major() == want.Major() && has.Minor() < want.Minor():
		return "is of " + crd + "; " + need
	}
	return ""
}
