// Package cpumask reads which of a guest's virtual CPUs a setting is for.
package cpumask

import (
	"fmt"
	"strconv"
	"strings"
)

// most is how many virtual CPUs a guest may have; source: QEMU's q35 machine.
const most = 4096

// Mask tells virtual CPUs by their numbers; nil has all.
type Mask map[uint]bool

// Has tells whether a virtual CPU is in the mask.
func (m Mask) Has(id uint) bool { return m == nil || m[id] }

// Parse reads numbers and ranges with commas between them, those with ^ before them taken out again, such as 0-3,^1. An
// empty text is all.
func Parse(text string) (Mask, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	in, out := Mask{}, Mask{}
	for part := range strings.SplitSeq(text, ",") {
		to, numbers := in, strings.TrimSpace(part)
		if rest, not := strings.CutPrefix(numbers, "^"); not {
			to, numbers = out, rest
		}
		first, last, err := Range(numbers, most)
		if err != nil {
			return nil, err
		}
		for id := first; id <= last; id++ {
			to[id] = true
		}
	}
	for id := range out {
		delete(in, id)
	}
	if len(in) == 0 {
		return nil, fmt.Errorf("%q has no virtual CPU", text)
	}
	return in, nil
}

// Range reads a number, or two in order with - between them, such as 0-3, all of them below a limit.
func Range(text string, below uint64) (first, last uint, err error) {
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	a, err1 := strconv.ParseUint(low, 10, 32)
	b, err2 := strconv.ParseUint(high, 10, 32)
	if err1 != nil || err2 != nil || b < a || b >= below {
		return 0, 0, fmt.Errorf("%q is neither a number nor a range below %d", text, below)
	}
	return uint(a), uint(b), nil
}
