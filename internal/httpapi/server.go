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

// Deps are what a Server tells about.
type Deps struct {
	// Ready says why the agent cannot work, or nil.
	Ready func(context.Context) error
	// Versions are read at each scrape.
	Versions func(context.Context) ([]Version, error)
	// Work is read at each scrape.
	Work func() Work
	// Profiles adds /debug/pprof. Whoever can ask for it can slow the agent down: it is for a loopback address.
	Profiles bool
}

// Server answers over HTTP.
type Server struct {
	deps     Deps
	commits  prometheus.Histogram
	registry *prometheus.Registry
}

// answerIn bounds what one question may take.
const answerIn = 5 * time.Second

// New makes a Server.
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

// Committed counts one live commit.
func (s *Server) Committed(took time.Duration) { s.commits.Observe(took.Seconds()) }

// Handler answers the three paths, and /debug/pprof when it was asked for.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerIn)
		defer cancel()
		answer(w, s.deps.Ready(ctx))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
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
	_, _ = w.Write([]byte(text)) // the asker is gone
}

// Serve answers on l until ctx ends, then lets the questions in hand end.
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
