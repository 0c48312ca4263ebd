package e2e_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// deed is what a proxy does to a connection that has said the words it waits for.
type deed string

const (
	cutBefore deed = "before the statement arrives"  // nothing of the words reaches the server
	cutAfter  deed = "before the answer arrives"     // the server does it; its answer is lost
	halfOpen  deed = "(half-open: no error, no end)" // the connection stays open, and nothing passes in either direction
)

// proxy is a TCP proxy of a test, between kappactl and one server. It passes everything until it is told otherwise.
type proxy struct {
	t      *testing.T
	listen net.Listener
	target string

	mu    sync.Mutex // guards the rest
	trap  *trap
	conns map[net.Conn]bool
	delay time.Duration // of every piece that the server sends
	dead  bool          // new and open connections stay open and nothing passes
	group sync.WaitGroup
}

// trap waits for a connection that says all its words, in their order, and strikes it once.
type trap struct {
	deed   deed
	words  []string
	struck chan struct{}
}

// startProxy begins a proxy before target, which ends with the test.
func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listen: l, target: target, conns: map[net.Conn]bool{}}
	p.group.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// addr is where clients reach the proxy.
func (p *proxy) addr() string { return p.listen.Addr().String() }

// dsn is a URL of the target, by way of the proxy.
func (p *proxy) dsn(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		p.t.Fatal(err)
	}
	u.Host = p.addr()
	return u.String()
}

// arm sets a trap and returns what is closed when it has struck.
func (p *proxy) arm(d deed, words ...string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap = &trap{deed: d, words: words, struck: make(chan struct{})}
	return p.trap.struck
}

// slow delays every piece that the server sends.
func (p *proxy) slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// silent makes all connections half-open, or lets new ones pass again and ends the silent ones.
func (p *proxy) silent(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = yes
	if !yes {
		for c := range p.conns {
			_ = c.Close()
		}
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) close() {
	_ = p.listen.Close()
	p.cut()
	p.group.Wait()
}

func (p *proxy) accept() {
	for {
		c, err := p.listen.Accept()
		if err != nil {
			return
		}
		p.group.Go(func() { p.serve(c) })
	}
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.DialTimeout("tcp", p.target, 5*time.Second)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns[client], p.conns[server] = true, true
	p.mu.Unlock()
	link := &link{p: p, client: client, server: server}
	var both sync.WaitGroup
	both.Go(link.up)
	both.Go(link.down)
	both.Wait()
	p.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, server)
	p.mu.Unlock()
}

// link is one connection through the proxy.
type link struct {
	p              *proxy
	client, server net.Conn

	mu     sync.Mutex // guards the rest
	muted  bool       // nothing passes any more
	struck *trap      // whose answer is to be lost
	said   []byte     // by the client since the last word of the trap
	heard  int        // words of the trap
	of     *trap
}

// up carries what the client says.
func (l *link) up() {
	defer l.end()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buf)
		if n > 0 && !l.passes(buf[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

// passes sends on a piece of what the client says, or does the trap's deed; false ends the connection.
func (l *link) passes(b []byte) bool {
	l.mu.Lock()
	d, hit := l.hear(b)
	muted := l.muted || l.p.isDead()
	l.mu.Unlock()
	if hit && d == cutBefore {
		return false
	}
	if muted {
		return true
	}
	_, err := l.server.Write(b)
	return err == nil
}

// hear follows the trap that is set, and says what to do when its last word was said.
func (l *link) hear(b []byte) (deed, bool) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	t := l.p.trap
	if t == nil {
		return "", false
	}
	if l.of != t {
		l.of, l.heard, l.said = t, 0, nil
	}
	l.said = append(l.said, b...)
	for l.heard < len(t.words) {
		i := bytes.Index(l.said, []byte(t.words[l.heard]))
		if i < 0 {
			l.said = l.said[max(0, len(l.said)-256):]
			return "", false
		}
		l.said = l.said[i+len(t.words[l.heard]):]
		l.heard++
	}
	l.p.trap = nil
	switch t.deed {
	case halfOpen:
		l.muted = true
	case cutAfter:
		l.struck = t
		return t.deed, true
	case cutBefore:
	}
	close(t.struck)
	return t.deed, true
}

// down carries what the server says.
func (l *link) down() {
	defer l.end()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buf)
		if err != nil {
			l.mu.Lock()
			muted := l.muted || l.p.isDead()
			l.mu.Unlock()
			if muted { // the client must not learn that the server is gone
				_, _ = io.Copy(io.Discard, l.client)
			}
			return
		}
		l.mu.Lock()
		lost, muted := l.struck, l.muted || l.p.isDead()
		l.mu.Unlock()
		if lost != nil {
			close(lost.struck)
			return
		}
		l.p.await()
		if muted {
			continue
		}
		if _, err := l.client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (l *link) end() {
	_ = l.client.Close()
	_ = l.server.Close()
}

func (p *proxy) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// await is the slowness of the line: the delay of a piece, which ends with the test.
func (p *proxy) await() {
	p.mu.Lock()
	d := p.delay
	p.mu.Unlock()
	if d > 0 {
		<-time.After(d)
	}
}

// hostOf is the address in a URL.
func hostOf(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
