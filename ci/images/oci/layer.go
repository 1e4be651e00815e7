// Package oci makes images of file trees and writes them as archives that "ctr images import" takes.
package oci

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"virtstack.io/virtstack/ci/images/rootfs"
)

// layer is a file tree, packed and compressed in memory. It implements v1.Layer.
type layer struct {
	compressed   []byte
	digest, diff v1.Hash
	size         int64 // uncompressed
}

func newLayer(tree *rootfs.Tree) (*layer, error) {
	var packed bytes.Buffer
	// One worker: with more, the bytes depend on how they share the work.
	compressor, err := zstd.NewWriter(&packed, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return nil, fmt.Errorf("setting up compression: %w", err)
	}
	diff, size := sha256.New(), counter(0)
	if err := tree.Tar(io.MultiWriter(compressor, diff, &size)); err != nil {
		return nil, err
	}
	if err := compressor.Close(); err != nil {
		return nil, fmt.Errorf("compressing a layer: %w", err)
	}
	digest := sha256.Sum256(packed.Bytes())
	return &layer{packed.Bytes(), sha(digest[:]), sha(diff.Sum(nil)), int64(size)}, nil
}

// Digest, DiffID, Compressed, Uncompressed, Size and MediaType are v1.Layer.
func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.diff, nil }
func (l *layer) Size() (int64, error)                { return int64(len(l.compressed)), nil }
func (l *layer) MediaType() (types.MediaType, error) { return types.OCILayerZStd, nil }
func (l *layer) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(l.compressed)), nil
}
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	r, err := zstd.NewReader(bytes.NewReader(l.compressed))
	if err != nil {
		return nil, err
	}
	return r.IOReadCloser(), nil
}

func sha(sum []byte) v1.Hash { return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum)} }

// counter counts the bytes written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
