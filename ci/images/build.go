package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"virtstack.io/virtstack/ci/images/component"
	"virtstack.io/virtstack/ci/images/debian"
	"virtstack.io/virtstack/ci/images/guest"
	"virtstack.io/virtstack/ci/images/launcher"
	"virtstack.io/virtstack/ci/images/oci"
)

// alias is the tag that always means the newest build, beside the one that is made of the content.
const alias = "dev"

type builder struct {
	out, cache, version string
	commit              commit
	log                 io.Writer
	packages            debian.Extracted
}

// nextAlias is the tag of the images that stand in for a later release, beside the one that is made of the content.
const nextAlias = "next"

// recipe says how one image is made.
type recipe struct {
	name    string
	compile func(context.Context) ([]string, error)
	spec    func(context.Context) (oci.Spec, error)
	// next is the name of the image whose later version this is, "" for none. It is built only when it is named.
	next string
}

func (b *builder) recipes() []recipe {
	now, next := b.this(), b.next()
	return []recipe{
		{name: "virtstack", compile: b.components(now), spec: b.componentSpec(now)},
		{name: "virt-launcher", compile: b.launcher(now), spec: b.launcherSpec(now)},
		{name: "guest", compile: b.compileGuestd, spec: func(ctx context.Context) (oci.Spec, error) {
			files, err := b.guest().Make(ctx)
			if err != nil {
				return oci.Spec{}, err
			}
			return guest.Spec(files)
		}},
		{name: "virtstack-next", next: "virtstack", compile: b.components(next), spec: b.componentSpec(next)},
		{name: "virt-launcher-next", next: "virt-launcher", compile: b.launcher(next), spec: b.launcherSpec(next)},
	}
}

func (b *builder) componentSpec(e edition) func(context.Context) (oci.Spec, error) {
	return func(context.Context) (oci.Spec, error) { return component.Spec(b.packages, e.dir) }
}

func (b *builder) launcherSpec(e edition) func(context.Context) (oci.Spec, error) {
	return func(context.Context) (oci.Spec, error) {
		return launcher.Spec(b.packages, filepath.Join(e.dir, "virt-launcher"))
	}
}

func (b *builder) guest() guest.Builder {
	return guest.Builder{Packages: b.packages, Guestd: b.cached("bin", "guestd"), Work: b.cached("guest")}
}

func (b *builder) cached(names ...string) string {
	return filepath.Join(append([]string{b.cache}, names...)...)
}

// Record is what images.json says of one image.
type Record struct {
	Ref             string `json:"ref"`             // the name by content; the alias is the same with the tag "dev"
	Archive         string `json:"archive"`         // file beside images.json, holds both names
	Bytes           int64  `json:"bytes"`           // sum of the layers, unpacked
	CompressedBytes int64  `json:"compressedBytes"` // sum of the layers, as they are transferred
	Inputs          string `json:"inputs"`          // digest of all that the image was made of
}

// build brings the named images up to date, all of this version if none is named.
func (b *builder) build(ctx context.Context, names []string) error {
	recipes, err := b.named(names)
	if err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	records, err := b.records()
	if err != nil {
		return err
	}
	for _, r := range recipes {
		record, err := b.bringUpToDate(ctx, r, records[r.name])
		if err != nil {
			return fmt.Errorf("image %s: %w", r.name, err)
		}
		records[r.name] = record
		if err := b.writeRecords(records); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) named(names []string) ([]recipe, error) {
	all := b.recipes()
	if len(names) == 0 {
		return slices.DeleteFunc(all, func(r recipe) bool { return r.next != "" }), nil
	}
	var chosen []recipe
	for _, name := range names {
		i := slices.IndexFunc(all, func(r recipe) bool { return r.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no image %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// prepare makes the directories and gets the packages.
func (b *builder) prepare(ctx context.Context) error {
	for _, dir := range []string{b.out, b.cache, b.cached("guest")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	var err error
	b.packages, err = debian.Fetch(ctx, b.cache, debian.Union(component.Packages, launcher.Packages, guest.Packages), b.log)
	return err
}

func (b *builder) bringUpToDate(ctx context.Context, r recipe, old Record) (Record, error) {
	start := time.Now()
	files, err := r.compile(ctx)
	if err != nil {
		return Record{}, err
	}
	compiled := time.Since(start)
	inputs, err := b.inputs(files)
	if err != nil {
		return Record{}, err
	}
	if _, err := os.Stat(filepath.Join(b.out, old.Archive)); err == nil && old.Inputs == inputs {
		fmt.Fprintf(b.log, "%s: unchanged (%.1fs, of it go build %.1fs)\n", old.Ref, time.Since(start).Seconds(), compiled.Seconds())
		return old, nil
	}
	record, err := b.write(ctx, r)
	if err != nil {
		return Record{}, err
	}
	record.Inputs = inputs
	fmt.Fprintf(b.log, "%s: %d MB, %d MB compressed (%.1fs, of it go build %.1fs)\n", record.Ref, record.Bytes/1e6, record.CompressedBytes/1e6, time.Since(start).Seconds(), compiled.Seconds())
	return record, nil
}

func (b *builder) write(ctx context.Context, r recipe) (Record, error) {
	spec, err := r.spec(ctx)
	if err != nil {
		return Record{}, err
	}
	image, err := oci.Build(spec)
	if err != nil {
		return Record{}, err
	}
	tag, err := image.Tag()
	if err != nil {
		return Record{}, err
	}
	repository, archive, alias := "localhost/"+r.name, r.name+".tar", alias
	if r.next != "" {
		repository, alias = "localhost/"+r.next, nextAlias
	}
	if err := image.WriteArchive(filepath.Join(b.out, archive), repository, tag, alias); err != nil {
		return Record{}, err
	}
	return Record{Ref: repository + ":" + tag, Archive: archive, Bytes: image.Bytes, CompressedBytes: image.CompressedBytes}, nil
}

// inputs returns the digest of the packages, of the files and of this program, which holds everything else.
func (b *builder) inputs(files []string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, b.packages.Key)
	for _, file := range append([]string{self}, files...) {
		f, err := os.Open(file)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(sum, f)
		f.Close()
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", file, err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (b *builder) recordsFile() string { return filepath.Join(b.out, "images.json") }

func (b *builder) records() (map[string]Record, error) {
	records := map[string]Record{}
	data, err := os.ReadFile(b.recordsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return records, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &records); err != nil {
		return nil, fmt.Errorf("reading %s: %w", b.recordsFile(), err)
	}
	return records, nil
}

func (b *builder) writeRecords(records map[string]Record) error {
	data, err := json.MarshalIndent(records, "", "  ")
	if err != nil {
		return err
	}
	part := b.recordsFile() + ".part"
	if err := os.WriteFile(part, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(part, b.recordsFile())
}
