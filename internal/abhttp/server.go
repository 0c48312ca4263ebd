package abhttp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Deps are what a Server works with.
type Deps struct {
	Pool   *pg.Pool
	Router *abtest.Router
	Log    *slog.Logger
	Now    func() time.Time
	// Token must come with every request. An empty one serves those to a loopback address only.
	Token string
}

// Limits of requests.
const (
	maxContext = 64 << 10 // bytes of an evaluation context
	maxBody    = 1 << 20  // bytes of exposures or rewards
	maxItems   = 1000
	perSecond  = 2000 // requests, beyond bursts
	burst      = 1000
	atOnce     = 256
	answerIn   = 5 * time.Second
)

// Server answers requests about experiments.
type Server struct {
	deps   Deps
	token  [sha256.Size]byte
	bucket *bucket
	places chan struct{}
	mux    *http.ServeMux
}

// endpoint is one operation of the API.
type endpoint struct {
	method, path string
	serve        func(*Server, http.ResponseWriter, *http.Request)
}

func endpoints() []endpoint {
	return []endpoint{
		{http.MethodPost, "/ofrep/v1/evaluate/flags/{key}", (*Server).evaluate},
		{http.MethodPost, "/ofrep/v1/evaluate/flags", (*Server).evaluateAll},
		{http.MethodGet, "/v1/route/{job}", (*Server).route},
		{http.MethodPost, "/v1/exposures", (*Server).exposures},
		{http.MethodPost, "/v1/rewards", (*Server).rewards},
		{http.MethodGet, "/v1/experiments/{job}", (*Server).experiment},
		{http.MethodGet, "/v1/experiments/{job}/decisions", (*Server).decisions},
	}
}

// New makes a Server.
func New(d Deps) *Server {
	s := &Server{
		deps: d, token: sha256.Sum256([]byte(d.Token)), bucket: newBucket(perSecond, burst, d.Now),
		places: make(chan struct{}, atOnce),
		mux:    http.NewServeMux(),
	}
	for _, e := range endpoints() {
		s.mux.HandleFunc(e.method+" "+e.path, func(w http.ResponseWriter, r *http.Request) { e.serve(s, w, r) })
	}
	return s
}

// ServeHTTP answers one request, or refuses it before it costs anything.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !s.admitted(w, r) {
		return
	}
	if wait, ok := s.bucket.take(); !ok {
		tooMany(w, wait)
		return
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		tooMany(w, 1)
		return
	}
	handler, pattern := s.mux.Handler(r)
	if pattern == "" {
		lost(w, r, handler)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(s.deps.Now().Add(answerIn)) // a recorder of tests has none
	ctx, cancel := context.WithTimeout(r.Context(), answerIn)
	defer cancel()
	s.mux.ServeHTTP(w, r.WithContext(ctx))
}

// admitted checks the token. Without one it answers only requests that name a loopback address: a page of another site
// that a browser on this machine shows could send others.
func (s *Server) admitted(w http.ResponseWriter, r *http.Request) bool {
	if s.deps.Token == "" {
		if ofLoopback(r.Host) {
			return true
		}
		refuse(w, http.StatusForbidden, "no_token",
			"experiments are served beyond a loopback address only with a token: set http_token_file")
		return false
	}
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	sum := sha256.Sum256([]byte(given))
	if bearer && subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1 {
		return true
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="kappactl"`)
	refuse(w, http.StatusUnauthorized, "unauthorized",
		"send the header Authorization: Bearer TOKEN, with the token of http_token_file")
	return false
}

func ofLoopback(address string) bool {
	host := address
	if h, _, err := net.SplitHostPort(address); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func tooMany(w http.ResponseWriter, wait int) {
	w.Header().Set("Retry-After", strconv.Itoa(wait))
	refuse(w, http.StatusTooManyRequests, "too_many_requests",
		"this agent answers "+strconv.Itoa(perSecond)+" requests a second")
}

// lost answers what no endpoint is for: the handler of ServeMux knows the status and the methods.
func lost(w http.ResponseWriter, r *http.Request, handler http.Handler) {
	found := &statusOnly{header: w.Header(), code: http.StatusOK}
	handler.ServeHTTP(found, r)
	if found.code == http.StatusMethodNotAllowed {
		refuse(w, found.code, "method_not_allowed", "the methods of this address are "+w.Header().Get("Allow"))
		return
	}
	refuse(w, http.StatusNotFound, "not_found", "there is nothing at this address; docs/openapi.yaml lists what there is")
}

// statusOnly keeps the status of an answer and drops its text.
type statusOnly struct {
	header http.Header
	code   int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) WriteHeader(code int)        { s.code = code }
func (s *statusOnly) Write(b []byte) (int, error) { return len(b), nil }

// problem is the body of a refusal, as of RFC 9457.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func refuse(w http.ResponseWriter, status int, code, detail string) {
	write(w, status, "application/problem+json", problem{http.StatusText(status), status, code, detail})
}

func write(w http.ResponseWriter, status int, kind string, body any) {
	text, err := json.Marshal(body)
	if err != nil { // none of the bodies can fail
		status, text = http.StatusInternalServerError, []byte(`{}`)
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client has disconnected
}

// failed answers an error.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *job.Refusal
	switch {
	case errors.Is(err, abtest.ErrUnknownJob):
		refuse(w, http.StatusNotFound, "unknown_job", err.Error())
	case errors.Is(err, abtest.ErrNoSubject), errors.Is(err, abtest.ErrSubject), errors.Is(err, abtest.ErrPin):
		refuse(w, http.StatusBadRequest, "invalid", err.Error())
	case errors.As(err, &refusal):
		refuse(w, http.StatusNotFound, "not_found", refusal.Cause)
	default:
		s.deps.Log.Warn("a request about experiments failed", "path", r.URL.Path, "error", err)
		refuse(w, http.StatusInternalServerError, "internal",
			"the database does not answer, or refuses; the agent's log has the error")
	}
}
