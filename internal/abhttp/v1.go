package abhttp

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/job"
)

// itemAnswer is what became of one item of a list.
type itemAnswer struct {
	Code    string `json:"code"`
	Version string `json:"version,omitempty"` // of an exposure
	Detail  string `json:"detail,omitempty"`  // of an item that is invalid
}

// Codes of items.
const (
	codeInvalid     = "invalid"
	codeUnknownJob  = "unknown_job"
	codeRecorded    = "recorded"
	codeNotRecorded = "not_recorded" // outside the experiment, at a pause, or without an experiment
	codeUnavailable = "unavailable"  // the database does not answer: send it again
)

// route answers which version a subject reads, and records nothing.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	subject := query.Get("subject")
	if subject != "" {
		if err := checkSubject(subject); err != nil {
			s.failed(w, r, err)
			return
		}
	}
	a, err := s.deps.Router.Route(r.Context(), job.Name(r.PathValue("job")), subject, query.Get("pin"))
	if err != nil {
		s.failed(w, r, err)
		return
	}
	write(w, http.StatusOK, "application/json", a)
}

// exposures records subjects that are about to read their arms.
func (s *Server) exposures(w http.ResponseWriter, r *http.Request) {
	list, bad := items(w, r)
	if bad != nil {
		refuse(w, bad.status, bad.code, bad.detail)
		return
	}
	out := make([]itemAnswer, len(list))
	var wait sync.WaitGroup
	for i, text := range list {
		wait.Go(func() { out[i] = s.expose(r, text) })
	}
	wait.Wait()
	write(w, http.StatusAccepted, "application/json", map[string]any{"items": out})
}

func (s *Server) expose(r *http.Request, text json.RawMessage) itemAnswer {
	var sent struct {
		Job     job.Name `json:"job"`
		Subject string   `json:"subject"`
	}
	err := decode(text, &sent)
	if err == nil {
		err = checkSubject(sent.Subject)
	}
	if err != nil {
		return itemAnswer{Code: codeInvalid, Detail: err.Error()}
	}
	a, err := s.deps.Router.Expose(r.Context(), sent.Job, sent.Subject, "")
	switch {
	case errors.Is(err, abtest.ErrUnknownJob):
		return itemAnswer{Code: codeUnknownJob}
	case err != nil || a.Stale:
		return itemAnswer{Code: codeUnavailable}
	case !a.Recorded:
		return itemAnswer{Code: codeNotRecorded, Version: a.Version}
	}
	return itemAnswer{Code: codeRecorded, Version: a.Version}
}

// experiment answers with the newest experiment of a job, as ab status -o json does.
func (s *Server) experiment(w http.ResponseWriter, r *http.Request) {
	found, err := abtest.Store{}.Status(r.Context(), s.deps.Pool, job.Name(r.PathValue("job")))
	if err != nil {
		s.failed(w, r, err)
		return
	}
	write(w, http.StatusOK, "application/json", found)
}

// decisions answers with what was decided about a job, the newest first, as ab decisions -o json does.
func (s *Server) decisions(w http.ResponseWriter, r *http.Request) {
	found, err := abtest.Store{}.Decisions(r.Context(), s.deps.Pool, job.Name(r.PathValue("job")))
	if err != nil {
		s.failed(w, r, err)
		return
	}
	write(w, http.StatusOK, "application/json", found)
}
