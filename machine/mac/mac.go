// Package mac reads MAC addresses as people write them.
package mac

import (
	"encoding/hex"
	"errors"
	"strings"
)

// Errors say what an address lacks and what would be right; they don't repeat the address.
var (
	ErrFormat = errors.New("must be six bytes in hexadecimal, such as 02:00:5e:00:53:0a")
	ErrGroup  = errors.New("must not be a group address: make its first byte even, such as 02:00:5e:00:53:0a")
	ErrZero   = errors.New("must not be zero: leave it out, or give one such as 02:00:5e:00:53:0a")
)

// shapes are the spellings taken, with x for a hexadecimal digit.
var shapes = []string{"xx:xx:xx:xx:xx:xx", "xx-xx-xx-xx-xx-xx", "xxxx.xxxx.xxxx"}

// Parse returns the address in the one spelling that libvirt and every status use: lower case with colons. It takes
// capitals, dashes for colons, and three groups with dots. An address that is well written but can't be a network
// interface's is returned with ErrGroup or ErrZero.
func Parse(text string) (string, error) {
	var digits string
	for _, shape := range shapes {
		if d, ok := fit(text, shape); ok {
			digits = strings.ToLower(d)
		}
	}
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != 6 {
		return "", ErrFormat
	}
	pairs := make([]string, len(b))
	for i := range b {
		pairs[i] = digits[2*i : 2*i+2]
	}
	address := strings.Join(pairs, ":")
	switch {
	case b[0]&1 != 0:
		return address, ErrGroup
	case address == "00:00:00:00:00:00":
		return address, ErrZero
	}
	return address, nil
}

// fit returns the characters of text that stand where the shape has an x, if its others are the shape's.
func fit(text, shape string) (string, bool) {
	if len(text) != len(shape) {
		return "", false
	}
	var digits strings.Builder
	for i := range len(shape) {
		switch {
		case shape[i] == 'x':
			digits.WriteByte(text[i])
		case shape[i] != text[i]:
			return "", false
		}
	}
	return digits.String(), true
}
