package s3test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// HostStyle starts a TLS server before a gateway with a certificate for https://BUCKET.s3.test, and returns the address
// of an HTTP proxy that connects every name to it: these names are in no DNS. hosts is called for each name that a
// client asks the proxy for.
func HostStyle(t testing.TB, g *Gateway, certificate tls.Certificate, hosts func(name string)) (proxy string) {
	t.Helper()
	to, err := url.Parse(g.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	// The signature covers the Host of the client: it stays.
	store := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
	}})
	store.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	store.StartTLS()
	t.Cleanup(store.Close)
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "want CONNECT", http.StatusMethodNotAllowed)
			return
		}
		hosts(r.Host)
		connect(w, store.Listener.Addr().String())
	}))
	t.Cleanup(p.Close)
	return p.URL
}

// connect answers a CONNECT and passes bytes both ways until one side ends.
func connect(w http.ResponseWriter, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = server.Close()
		return
	}
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	pass := func(to net.Conn, from io.Reader) {
		_, _ = io.Copy(to, from)
		_, _ = client.Close(), server.Close()
	}
	go pass(server, bufio.NewReader(buffered))
	go pass(client, server)
}
