package s3test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// Keys gives an access key to archive.S3.
func Keys(id, secret string) func(context.Context) (string, string, error) {
	return func(context.Context) (string, string, error) { return id, secret, nil }
}

// Fault is a fault that a Proxy injects into a request.
type Fault int

// The faults.
const (
	Pass  Fault = iota
	Drop        // the connection is closed before an answer
	Break       // the connection is closed in the middle of the answer's body
	Busy        // 503, as an overloaded store answers
	Hang        // no answer until the client gives up
	Slow        // the answer comes after 200 ms
)

// Proxy is before a gateway and fails requests.
type Proxy struct {
	Endpoint string

	judge atomic.Pointer[func(r *http.Request) Fault]
}

// NewProxy starts a proxy that passes every request until Judge.
func NewProxy(t testing.TB, g *Gateway) *Proxy {
	t.Helper()
	to, err := url.Parse(g.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{}
	p.Judge(func(*http.Request) Fault { return Pass })
	// The signature covers the Host of the client: it stays.
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(forward, w, r) }))
	t.Cleanup(s.Close)
	p.Endpoint = s.URL
	return p
}

// Judge decides about requests from now on. It is called from many goroutines.
func (p *Proxy) Judge(judge func(r *http.Request) Fault) { p.judge.Store(&judge) }

func (p *Proxy) serve(forward http.Handler, w http.ResponseWriter, r *http.Request) {
	switch (*p.judge.Load())(r) {
	case Drop:
		panic(http.ErrAbortHandler)
	case Break:
		record := httptest.NewRecorder()
		forward.ServeHTTP(record, r)
		body := record.Body.Bytes()
		w.Header().Set("Content-Length", record.Header().Get("Content-Length"))
		w.Header().Set("ETag", record.Header().Get("ETag"))
		w.Header().Set("Last-Modified", record.Header().Get("Last-Modified"))
		w.WriteHeader(record.Code)
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	case Busy:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w,
			`<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>`)
	case Hang:
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	case Slow:
		select {
		case <-time.After(200 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
		forward.ServeHTTP(w, r)
	case Pass:
		forward.ServeHTTP(w, r)
	}
}
