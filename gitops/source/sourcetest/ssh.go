package sourcetest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Key is a key of ssh.
type Key struct {
	Signer ssh.Signer
	// Private is PEM as ssh-keygen writes it, Public a line of authorized_keys.
	Private, Public []byte
}

// NewKey makes a key.
func NewKey(t testing.TB) Key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	return Key{signer, pem.EncodeToMemory(block), ssh.MarshalAuthorizedKey(signer.PublicKey())}
}

// SSH serves the repository over ssh as well, to whom has the key, until the test ends. It returns the URL, and the
// known_hosts of the server.
func (r *Repository) SSH(client Key) (url string, knownHosts []byte) {
	r.t.Helper()
	host := NewKey(r.t)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), client.Signer.PublicKey().Marshal()) {
			return nil, errors.New("another key")
		}
		return nil, nil
	}}
	config.AddHostKey(host.Signer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go r.answer(c, config)
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return fmt.Sprintf("ssh://git@127.0.0.1:%s%s/.git", port, r.Dir), fmt.Appendf(nil, "[127.0.0.1]:%s %s", port, host.Public)
}

// answer runs what git asks for on the sessions of one connection: git-upload-pack of this repository and no other.
func (r *Repository) answer(c net.Conn, config *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for next := range channels {
		channel, requests, err := next.Accept()
		if err != nil {
			return
		}
		go r.session(channel, requests)
	}
}

func (r *Repository) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	for q := range requests {
		asked := struct{ Command string }{}
		known := q.Type == "exec" && ssh.Unmarshal(q.Payload, &asked) == nil && asked.Command == "git-upload-pack '"+r.Dir+"/.git'"
		if q.WantReply {
			_ = q.Reply(known, nil)
		}
		if !known {
			continue
		}
		cmd := exec.Command("git-upload-pack", r.Dir+"/.git")
		cmd.Stdout = channel
		in, err := cmd.StdinPipe()
		if err != nil || cmd.Start() != nil {
			_ = channel.Close()
			return
		}
		go func() { _, _ = io.Copy(in, channel) }()
		_ = cmd.Wait()
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
		_ = channel.Close()
	}
}
