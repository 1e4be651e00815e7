// Package cloudinit makes the NoCloud seed of a guest: an ISO 9660 image labelled cidata. What the owner of the VM
// wrote reaches the guest byte for byte.
package cloudinit

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	v1 "kubevirt.io/api/core/v1"
)

// Largest is how many bytes of user data, or of network data, a seed may hold once decoded: what a Secret can carry.
const Largest = 1 << 20

const (
	// label is padded as ISO 9660 wants it, with blanks.
	label     = "cidata                          "
	blockSize = 2048
	// room for what is not content: descriptors, directories, and the ends of blocks, in bytes. What is left of it is
	// a hole in the file.
	room = 1 << 20
)

// Seed is what is in a NoCloud image. Network is left out where it is nil.
type Seed struct {
	User, Meta, Network []byte
}

// Secrets reads keys of the Secrets that a source refers to, as they are mounted in the launcher. A key that isn't
// there gives an error for which errors.Is(err, fs.ErrNotExist) holds.
type Secrets interface {
	ReadFile(name string) ([]byte, error)
}

// From reads a NoCloud source. instance is the ID of the machine, hostname the guest's. Errors name the field of the
// source.
func From(source *v1.CloudInitNoCloudSource, secrets Secrets, instance, hostname string) (Seed, error) {
	s := Seed{Meta: fmt.Appendf(nil, "instance-id: %s\nlocal-hostname: %s\n", instance, hostname)}
	var err error
	s.User, err = data(part{"userData", source.UserData, source.UserDataBase64, source.UserDataSecretRef != nil, []string{"userdata", "userData"}}, secrets)
	if err != nil {
		return Seed{}, err
	}
	s.Network, err = data(part{"networkData", source.NetworkData, source.NetworkDataBase64, source.NetworkDataSecretRef != nil, []string{"networkdata", "networkData"}}, secrets)
	return s, err
}

// part is user data or network data: where it may come from.
type part struct {
	field, plain, base64 string
	secret               bool
	keys                 []string
}

func data(p part, secrets Secrets) ([]byte, error) {
	raw, err := p.read(secrets)
	if err != nil {
		return nil, err
	}
	if len(raw) > Largest {
		return nil, fmt.Errorf("%s: %d bytes, at most %d", p.field, len(raw), Largest)
	}
	return raw, nil
}

func (p part) read(secrets Secrets) ([]byte, error) {
	switch {
	case p.secret:
		var errs []error
		for _, key := range p.keys {
			raw, err := secrets.ReadFile(key)
			if err == nil {
				return raw, nil
			}
			errs = append(errs, err)
		}
		return nil, fmt.Errorf("%sSecretRef: the Secret has none of the keys %q: %w", p.field, p.keys, errors.Join(errs...))
	case p.base64 != "":
		raw, err := base64.StdEncoding.DecodeString(p.base64)
		if err != nil {
			return nil, fmt.Errorf("%sBase64: must be standard base64: %w", p.field, err)
		}
		return raw, nil
	case p.plain != "":
		return []byte(p.plain), nil
	}
	return nil, nil
}

// Write makes the image at path, which must not be there. scratch is a directory for what is collected meanwhile.
// The names are kept as they are by Rock Ridge for Linux and by Joliet for others.
func (s Seed) Write(path, scratch string) (err error) {
	workspace, err := os.MkdirTemp(scratch, "seed-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(workspace)) }()
	size := int64(room+len(s.User)+len(s.Meta)+len(s.Network)) / blockSize * blockSize
	image, err := file.CreateFromPath(path, size)
	if err != nil {
		return fmt.Errorf("making the seed image: %w", err)
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	fs, err := iso9660.Create(image, size, 0, blockSize, workspace)
	if err != nil {
		return fmt.Errorf("making the seed image: %w", err)
	}
	for name, content := range map[string][]byte{"user-data": s.User, "meta-data": s.Meta, "network-config": s.Network} {
		if content == nil && name == "network-config" {
			continue
		}
		if err := put(fs, name, content); err != nil {
			return fmt.Errorf("writing %s into the seed image: %w", name, err)
		}
	}
	return fs.Finalize(iso9660.FinalizeOptions{RockRidge: true, Joliet: true, VolumeIdentifier: label})
}

func put(fs *iso9660.FileSystem, name string, content []byte) error {
	f, err := fs.OpenFile("/"+name, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil && !errors.Is(err, io.EOF) {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
