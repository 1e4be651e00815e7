package debian

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// apt is an apt with nothing installed and a home of its own.
type apt struct {
	home string
	log  io.Writer
}

// newApt sets up the state beneath home. The settings for http (a proxy, say) are taken over from the machine's own
// apt, its hooks are not.
func newApt(home string, log io.Writer) (apt, error) {
	a := apt{filepath.Join(home, "apt"), log}
	for _, dir := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(a.home, dir), 0o755); err != nil {
			return apt{}, err
		}
	}
	from, err := machineArchive()
	if err != nil {
		return apt{}, err
	}
	http, err := exec.Command("apt-config", "dump", "Acquire").Output()
	if err != nil {
		return apt{}, fmt.Errorf("reading the machine's apt settings (this needs a Debian machine): %w", err)
	}
	source := fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n", from.uri, Suite, from.keyring)
	files := map[string]string{"status": "", "debian.sources": source, "apt.conf": a.settings(string(http))}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(a.home, name), []byte(content), 0o644); err != nil {
			return apt{}, err
		}
	}
	return a, nil
}

func machineArchive() (archive, error) {
	all, err := machineArchives("/etc/apt")
	if err != nil {
		return archive{}, err
	}
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return archive{}, err
	}
	for line := range strings.SplitSeq(string(release), "\n") {
		if codename, ok := strings.CutPrefix(line, "VERSION_CODENAME="); ok {
			return debianArchive(all, codename)
		}
	}
	return archive{}, errNoArchive
}

func (a apt) settings(machine string) string {
	var s strings.Builder
	for line := range strings.SplitSeq(machine, "\n") {
		if strings.HasPrefix(strings.ToLower(line), "acquire::http") {
			fmt.Fprintln(&s, line)
		}
	}
	for _, setting := range [][2]string{
		{"Dir::State::Lists", a.home + "/lists"}, {"Dir::State::status", a.home + "/status"},
		{"Dir::Cache", a.home}, {"Dir::Cache::archives", a.home + "/archives"},
		{"Dir::Etc::parts", "/dev/null"}, {"Dir::Etc::main", "/dev/null"}, {"Dir::Etc::SourceParts", "/dev/null"},
		{"Dir::Etc::SourceList", a.home + "/debian.sources"}, {"APT::Architecture", "amd64"},
		{"APT::Install-Recommends", "false"}, {"Acquire::Languages", "none"}, {"Acquire::Retries", "3"},
		// The downloads are root's: apt's unprivileged user may not reach the directory.
		{"APT::Sandbox::User", "root"},
	} {
		fmt.Fprintf(&s, "%s %q;\n", setting[0], setting[1])
	}
	return s.String()
}

// download returns the files of all packages of the set, sorted by name.
func (a apt) download(ctx context.Context, set Set) ([]string, error) {
	if _, err := a.run(ctx, "apt-get", "-q", "update"); err != nil {
		return nil, err
	}
	alone := slices.Clone(set.Alone)
	for _, name := range set.Newest {
		newest, err := a.newest(ctx, name)
		if err != nil {
			return nil, err
		}
		alone = append(alone, newest)
	}
	if _, err := a.run(ctx, "apt-get", append([]string{"-q", "-y", "--download-only", "install"}, set.Closure...)...); err != nil {
		return nil, err
	}
	if _, err := a.run(ctx, "apt-get", append([]string{"-q", "download"}, alone...)...); err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(a.home, "archives", "*.deb"))
}

// newest returns what the package depends on.
func (a apt) newest(ctx context.Context, name string) (string, error) {
	out, err := a.run(ctx, "apt-cache", "depends", name)
	if err != nil {
		return "", err
	}
	for line := range strings.SplitSeq(out, "\n") {
		if newest, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: "); ok {
			return newest, nil
		}
	}
	return "", fmt.Errorf("package %s depends on nothing", name)
}

// run runs one of apt's programs and returns its output; the output is part of the error too.
func (a apt) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = filepath.Join(a.home, "archives") // where "apt-get download" leaves its files
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(a.home, "apt.conf"), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
