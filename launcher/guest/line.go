package guest

import "strings"

// Longest is how many bytes a Line has at most, as api/guest/v1 promises; the kubelet reads four times as much of a
// termination message.
const Longest = 1 << 10

// Line makes one line of a text that came from libvirt, QEMU or an image: of bounded length, and valid UTF-8, for
// neither protobuf nor the API takes anything else.
func Line(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[:min(len(text), Longest)], "?")
}
