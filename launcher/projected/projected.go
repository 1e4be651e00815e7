// Package projected reads what the kubelet has published in a directory: the keys of Secrets and ConfigMaps, which it
// changes all at once.
package projected

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Published is the directory to which the kubelet's links in a volume lead: it is there once there is something.
const Published = "..data"

// File is one of them; Name is its path in the directory, with slashes.
type File struct {
	Name    string
	Content []byte
}

// Read returns all files by name; none, and no error, while nothing is published. No link leads out of the directory.
func Read(dir string) ([]File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := collect(root, Published)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

func collect(root *os.Root, dir string) ([]File, error) {
	entries, err := fs.ReadDir(root.FS(), dir)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			below, err := collect(root, name)
			if err != nil {
				return nil, err
			}
			files = append(files, below...)
			continue
		}
		content, err := root.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, File{strings.TrimPrefix(name, Published+"/"), content})
	}
	return files, nil
}
