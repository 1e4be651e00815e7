package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Write counts one kind of write in the API server's audit log.
type Write struct {
	Agent, Verb, Resource, Object string
	Count                         int
}

type auditEvent struct {
	Verb, UserAgent, Stage   string
	RequestReceivedTimestamp time.Time
	ResponseStatus           struct{ Code int }
	ObjectRef                struct{ Resource, Subresource, Namespace string }
}

// Writes returns the successful writes to objects of a namespace since then, most frequent first.
func (l *Lab) Writes(since time.Time, namespace string) ([]Write, error) {
	f, err := os.Open(filepath.Join(l.State(), "audit.log"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	counts := map[Write]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e auditEvent
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Stage != "ResponseComplete" || e.ResponseStatus.Code >= 300 {
			continue
		}
		if e.ObjectRef.Namespace != namespace || e.RequestReceivedTimestamp.Before(since) {
			continue
		}
		agent, _, _ := strings.Cut(e.UserAgent, "/")
		object := strings.TrimSuffix(fmt.Sprintf("%s/%s", e.ObjectRef.Resource, e.ObjectRef.Subresource), "/")
		counts[Write{Agent: agent, Verb: e.Verb, Resource: e.ObjectRef.Resource, Object: object}]++
	}
	var writes []Write
	for w, n := range counts {
		w.Count = n
		writes = append(writes, w)
	}
	slices.SortFunc(writes, func(a, b Write) int { return b.Count - a.Count })
	return writes, lines.Err()
}
