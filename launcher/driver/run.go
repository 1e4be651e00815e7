package driver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// MaxOutput is how much of what a program wrote is kept, in bytes.
	MaxOutput = 1 << 10
	// runEvery is how often the agent is asked whether a program has ended.
	runEvery = 200 * time.Millisecond
)

// Talk sends an agent one message and returns its answer, both in JSON; source: QEMU's guest agent protocol.
type Talk func(message string) (answer string, err error)

// PingBy asks an agent for nothing but an answer.
func PingBy(talk Talk) error {
	return say(talk, "guest-ping", nil, nil)
}

// By runs the program by an agent until it ends or ctx does. The agent can't end it: it may go on.
func (r Run) By(ctx context.Context, talk Talk) (AgentRan, error) {
	var started struct {
		PID int64 `json:"pid"`
	}
	arguments := map[string]any{"path": r.Path, "arg": append([]string{}, r.Args...), "capture-output": true}
	if err := say(talk, "guest-exec", arguments, &started); err != nil {
		return AgentRan{}, err
	}
	next := time.NewTicker(runEvery)
	defer next.Stop()
	for {
		var now execStatus
		if err := say(talk, "guest-exec-status", map[string]any{"pid": started.PID}, &now); err != nil {
			return AgentRan{}, err
		}
		if now.Exited {
			return now.ran(), nil
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return AgentRan{}, fmt.Errorf("%q has not ended in time: %w", r.Path, ctx.Err())
		}
	}
}

// execStatus is the agent's word on a program.
type execStatus struct {
	Exited   bool   `json:"exited"`
	ExitCode int64  `json:"exitcode"`
	Signal   int64  `json:"signal"`
	Out      string `json:"out-data"`
	Err      string `json:"err-data"`
}

// ran bounds it. Codes of more than a byte are not lost: none of them becomes 0.
func (s execStatus) ran() AgentRan {
	wrote := decoded(s.Out) + decoded(s.Err)
	r := AgentRan{Exit: int(s.ExitCode & 0xff), Output: strings.ToValidUTF8(wrote[:min(len(wrote), MaxOutput)], "")}
	switch {
	case s.Signal != 0:
		r.Exit = int(min(max(128+s.Signal, 129), 255))
	case r.Exit == 0 && s.ExitCode != 0:
		r.Exit = 255
	}
	return r
}

// decoded is the beginning of a text in base 64; what is none is empty from there.
func decoded(text string) string {
	text = text[:min(len(text), base64.StdEncoding.EncodedLen(MaxOutput))]
	raw, _ := base64.StdEncoding.DecodeString(text[:len(text)/4*4]) // it has what comes before the fault
	return string(raw)
}

func say(talk Talk, execute string, arguments map[string]any, into any) error {
	message, err := json.Marshal(struct {
		Execute   string         `json:"execute"`
		Arguments map[string]any `json:"arguments,omitempty"`
	}{execute, arguments})
	if err != nil {
		return err
	}
	answer, err := talk(string(message))
	if err != nil {
		return err
	}
	var reply struct {
		Return json.RawMessage `json:"return"`
	}
	if err := json.Unmarshal([]byte(answer), &reply); err != nil || reply.Return == nil || string(reply.Return) == "null" {
		return errors.New("the agent's answer to " + execute + " is not of its protocol")
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(reply.Return, into); err != nil {
		return errors.New("the agent's answer to " + execute + " is not of its protocol")
	}
	return nil
}
