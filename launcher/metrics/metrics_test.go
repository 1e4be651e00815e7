package metrics_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"virtstack.io/virtstack/launcher/metrics"
)

const qemu = "77 (qemu-system-x86) S 1 77 77 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 5 0 900 1 1\n"

func proc() fstest.MapFS {
	return fstest.MapFS{
		"stat":    {Data: []byte("cpu  100 50 200 9000 10 5 6 7 3 0\ncpu0 1 1 1 1 1\ncpu1 1 1 1 1 1\nintr 1 2\n")},
		"meminfo": {Data: []byte("MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\nSwapFree: 50 kB\n")},
		"vmstat":  {Data: []byte("pswpin 2\npswpout 3\n")},
		"1/stat":  {Data: []byte("1 (virt-launcher) S 0 1 1 0 -1 0 0 0 0 0 1 1 0 0\n")},
		"77/stat": {Data: []byte(qemu)},
	}
}

func TestFiguresOfTheKernel(t *testing.T) {
	got, err := metrics.ReadHost(proc(), "node-1")
	if err != nil {
		t.Fatal(err)
	}
	want := metrics.Host{
		Name: "node-1", CPUs: 2, CPUTime: 3680 * time.Millisecond, Free: 100 << 10, Used: 600 << 10, VirtualFree: 150 << 10,
		PagedIn: 8 << 10, PagedOut: 12 << 10,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
	if d, err := metrics.GuestTime(proc()); err != nil || d != 3*time.Second {
		t.Errorf("guest: got %v, %v; want 3s", d, err)
	}
	for name, stat := range map[string]string{"no guest": "", "short": "77 (qemu-system-x86) S 1\n", "odd": "77 (qemu-system-x86) S 1 1 1 1 1 1 1 1 1 1 x 1 1\n"} {
		odd := proc()
		odd["77/stat"] = &fstest.MapFile{Data: []byte(stat)}
		if d, err := metrics.GuestTime(odd); err == nil {
			t.Errorf("%s: got %v", name, d)
		}
	}
}

func TestReportNamesEachFigure(t *testing.T) {
	b, err := metrics.Report(time.Unix(1700000000, 0), metrics.Host{Name: "a<b", CPUs: 2, Free: 1 << 20}, metrics.Guest{CPUTime: 1500 * time.Millisecond, VCPUs: 4, Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(b)), " ")
	for _, want := range []string{
		`<metric type="string" context="host"> <name>HostName</name> <value>a&lt;b</value> </metric>`,
		`<metric type="uint64" context="host" unit="KiB"> <name>FreePhysicalMemory</name> <value>1024</value> </metric>`,
		`<metric type="int64" context="host" unit="s"> <name>Time</name> <value>1700000000</value> </metric>`,
		`<metric type="real64" context="vm" unit="s"> <name>TotalCPUTime</name> <value>1.500000</value> </metric>`,
		`<metric type="uint64" context="vm"> <name>ResourceProcessorLimit</name> <value>4</value> </metric>`,
		`<metric type="uint64" context="vm" unit="KiB"> <name>ResourceMemoryLimit</name> <value>1048576</value> </metric>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %s", want)
		}
	}
}

// guest is the other side of a channel: what it says, and what it was told.
type guest struct {
	io.Reader
	bytes.Buffer
}

func (g *guest) Read(p []byte) (int, error) { return g.Reader.Read(p) }

func TestOneRequestIsAnswered(t *testing.T) {
	report, none := []byte("<metrics/>"), []byte(nil)
	of := func(said []byte) func() ([]byte, error) {
		return func() ([]byte, error) {
			if said == nil {
				return nil, errors.New("no figures")
			}
			return said, nil
		}
	}
	for name, tc := range map[string]struct {
		said, told string
		report     []byte
	}{
		"the request":    {"GET /metrics/XML\n\n", "<metrics/>\n\n", report},
		"with returns":   {"GET /metrics/XML\r\n\r\n", "<metrics/>\n\n", report},
		"twice":          {"GET /metrics/XML\n\nGET /metrics/XML\n\n", "<metrics/>\n\n<metrics/>\n\n", report},
		"another":        {"GET /etc/passwd\n\n", "INVALID REQUEST\n\n", report},
		"nothing":        {"\n", "INVALID REQUEST\n\n", report},
		"without an end": {strings.Repeat("x", 1<<20), "", report},
		"too long":       {"GET /metrics/XML" + strings.Repeat(" ", 1<<20) + "\n\n", "INVALID REQUEST\n\n", report},
		"no figures":     {"GET /metrics/XML\n\n", "INVALID REQUEST\n\n", none},
	} {
		g := &guest{Reader: strings.NewReader(tc.said)}
		err := metrics.Answer(g, of(tc.report))
		if g.String() != tc.told || !errors.Is(err, io.EOF) {
			t.Errorf("%s: told %q, %v; want %q", name, g.String(), err, tc.told)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("GET /metrics/XML\n\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		g := &guest{Reader: bytes.NewReader(said)}
		_ = metrics.Answer(g, func() ([]byte, error) { return nil, errors.New("no figures") })
		if most := (bytes.Count(said, []byte("\n")) + 1) * len("INVALID REQUEST\n\n"); g.Len() > most {
			t.Errorf("%d bytes were told for %d", g.Len(), len(said))
		}
	})
}
