package process

import (
	"flag"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
)

// logging is how a component logs.
type logging struct {
	format    string
	verbosity int
}

func (l *logging) bind(fs *flag.FlagSet) {
	fs.StringVar(&l.format, "log-format", "json", "json or text")
	fs.IntVar(&l.verbosity, "v", 0, "verbosity: 0 says what changed, higher numbers say why")
}

func (l *logging) logger(w io.Writer) logr.Logger {
	options := &slog.HandlerOptions{Level: slog.Level(-l.verbosity)}
	if l.format == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(w, options))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(w, options))
}
