package console

// ring keeps the last bytes of a stream. A byte's offset counts from the start of the stream.
type ring struct {
	buf []byte
	end int64 // offset of the next byte
}

func (r *ring) write(p []byte) {
	if over := len(p) - len(r.buf); over > 0 {
		r.end += int64(over)
		p = p[over:]
	}
	at := int(r.end % int64(len(r.buf)))
	n := copy(r.buf[at:], p)
	copy(r.buf, p[n:])
	r.end += int64(len(p))
}

// start is the offset of the oldest byte that is kept.
func (r *ring) start() int64 { return max(0, r.end-int64(len(r.buf))) }

// read copies bytes from an offset on that is kept, and returns how many.
func (r *ring) read(p []byte, from int64) int {
	p = p[:min(int64(len(p)), r.end-from)]
	at := int(from % int64(len(r.buf)))
	n := copy(p, r.buf[at:])
	copy(p[n:], r.buf)
	return len(p)
}
