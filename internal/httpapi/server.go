package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Deps are the sources of a Server's data.
type Deps struct {
	// Ready returns why the agent cannot work, or nil.
	Ready func(context.Context) error
	// Versions is called at each scrape.
	Versions func(context.Context) ([]Version, error)
	// Archived is called at each scrape; nil means there is no archive.
	Archived func(context.Context) ([]Archived, error)
	// Scheduled is called at each scrape; nil means there are no schedules.
	Scheduled func(context.Context) ([]Scheduled, error)
	// Layers is called at each scrape; nil means there are no lambda versions.
	Layers func(context.Context) ([]Layers, error)
	// Experiments serves what is below /v1/ and /ofrep/.
	Experiments http.Handler
	// Work is called at each scrape.
	Work func() Work
	// Profiles adds /debug/pprof. A client that can reach it can slow the agent down: bind it to a loopback address.
	Profiles bool
}

// Server serves the endpoints.
type Server struct {
	deps     Deps
	commits  prometheus.Histogram
	registry *prometheus.Registry
}

// answerIn bounds the time of one request.
const answerIn = 5 * time.Second

// New creates a Server.
func New(d Deps) *Server {
	s := &Server{
		deps: d, registry: prometheus.NewRegistry(),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kappactl_commit_seconds", Help: "Time of a live commit's transaction.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
	}
	s.registry.MustRegister(s.commits, collector{s})
	return s
}

// Committed records the duration of one live commit.
func (s *Server) Committed(took time.Duration) { s.commits.Observe(took.Seconds()) }

// Handler serves the three endpoints, experiments and, if Profiles is set, /debug/pprof.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerIn)
		defer cancel()
		answer(w, s.deps.Ready(ctx))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
	}))
	if s.deps.Experiments != nil {
		mux.Handle("/v1/", s.deps.Experiments)
		mux.Handle("/ofrep/", s.deps.Experiments)
	}
	if s.deps.Profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text := "ok\n"
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		text = err.Error() + "\n"
	}
	_, _ = w.Write([]byte(text)) // the client has disconnected
}

// Serve serves on l until ctx ends, then waits for the open requests.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: answerIn, IdleTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := server.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if e := <-failed; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
