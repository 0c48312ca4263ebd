package abhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/job"
)

// flagAnswer is an evaluated flag of OFREP: the key is the job, value and variant are the version.
type flagAnswer struct {
	Key      job.Name       `json:"key"`
	Reason   string         `json:"reason"`
	Variant  string         `json:"variant"`
	Value    string         `json:"value"`
	Metadata map[string]any `json:"metadata"`
}

// flagError is a flag of OFREP that could not be evaluated.
type flagError struct {
	Key     string `json:"key,omitempty"` // empty: of all flags
	Code    string `json:"errorCode"`
	Details string `json:"errorDetails"`
}

// The error codes of OFREP.
const (
	parseError     = "PARSE_ERROR"
	noTargetingKey = "TARGETING_KEY_MISSING"
	invalidContext = "INVALID_CONTEXT"
	flagNotFound   = "FLAG_NOT_FOUND"
	general        = "GENERAL"
)

// evaluation is who asks: the subject, and pins by job.
type evaluation struct {
	subject string
	context map[string]json.RawMessage
}

// pin is the arm of a job that is asked for, by the name of the setting in SQL.
func (e evaluation) pin(name job.Name) string {
	var pin string
	_ = json.Unmarshal(e.context["kappactl.pin_"+string(name)], &pin) // what is no text is no pin
	return pin
}

func readEvaluation(w http.ResponseWriter, r *http.Request) (evaluation, *flagError, int) {
	text, bad := body(w, r, maxContext, "application/json")
	if bad != nil {
		return evaluation{}, &flagError{Code: parseError, Details: bad.detail}, bad.status
	}
	var sent struct {
		Context map[string]json.RawMessage `json:"context"`
	}
	if err := json.Unmarshal(text, &sent); err != nil {
		return evaluation{}, &flagError{Code: parseError, Details: "the body is not {\"context\": {…}}: " + err.Error()},
			http.StatusBadRequest
	}
	e := evaluation{context: sent.Context}
	key, given := sent.Context["targetingKey"]
	if !given || string(key) == "null" {
		return e, nil, http.StatusOK
	}
	if err := json.Unmarshal(key, &e.subject); err != nil {
		return e, &flagError{Code: invalidContext, Details: "targetingKey is not a text"}, http.StatusBadRequest
	}
	if e.subject == "" {
		return e, nil, http.StatusOK
	}
	if err := checkSubject(e.subject); err != nil {
		return e, &flagError{Code: invalidContext, Details: "targetingKey: " + err.Error()}, http.StatusBadRequest
	}
	return e, nil, http.StatusOK
}

// evaluate answers for one job and records the subject: it is about to read its arm.
func (s *Server) evaluate(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("key")
	e, bad, status := readEvaluation(w, r)
	if bad == nil {
		a, err := s.deps.Router.Expose(r.Context(), job.Name(name), e.subject, e.pin(job.Name(name)))
		if err == nil {
			write(w, http.StatusOK, "application/json", flagOf(a))
			return
		}
		bad, status = s.flagFailed(r, err)
	}
	bad.Key = name
	write(w, status, "application/json", bad)
}

// evaluateAll answers for every job with a live version, and records nothing: clients prefetch.
func (s *Server) evaluateAll(w http.ResponseWriter, r *http.Request) {
	e, bad, status := readEvaluation(w, r)
	var found []abtest.Answer
	if bad == nil {
		var err error
		if found, err = s.deps.Router.All(r.Context(), e.subject, e.pin); err != nil {
			bad, status = s.flagFailed(r, err)
		}
	}
	if bad != nil {
		write(w, status, "application/json", bad)
		return
	}
	flags := make([]any, len(found))
	for i, a := range found {
		if flags[i] = flagOf(a.Assignment); a.Err != nil {
			one, _ := s.flagFailed(r, a.Err)
			one.Key = string(a.Job)
			flags[i] = one
		}
	}
	answer := map[string]any{"flags": flags}
	text, err := json.Marshal(answer)
	if err != nil {
		s.failed(w, r, err)
		return
	}
	sum := sha256.Sum256(text)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache")
	if matches(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	write(w, http.StatusOK, "application/json", answer)
}

// matches is the weak comparison of If-None-Match.
func matches(headers []string, tag string) bool {
	for _, h := range headers {
		for one := range strings.SplitSeq(h, ",") {
			if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
				return true
			}
		}
	}
	return false
}

func flagOf(a abtest.Assignment) flagAnswer {
	f := flagAnswer{Key: a.Job, Variant: a.Version, Value: a.Version, Metadata: map[string]any{"relation": a.View}}
	if a.Run > 0 {
		f.Metadata["run"], f.Metadata["epoch"] = a.Run, a.Epoch
	}
	if a.Stale {
		f.Metadata["stale"] = true
	}
	if !a.Sticky {
		f.Metadata["sticky"] = false
	}
	switch a.Why {
	case abtest.BySplit, abtest.Outside:
		f.Reason = "SPLIT"
	case abtest.Pinned:
		f.Reason = "TARGETING_MATCH"
	case abtest.AtPause:
		f.Reason = "DISABLED"
	case abtest.NoSplit:
		f.Reason = "STATIC"
	}
	return f
}

func (s *Server) flagFailed(r *http.Request, err error) (*flagError, int) {
	code, status := general, http.StatusInternalServerError
	switch {
	case errors.Is(err, abtest.ErrUnknownJob):
		code, status = flagNotFound, http.StatusNotFound
	case errors.Is(err, abtest.ErrNoSubject):
		code, status = noTargetingKey, http.StatusBadRequest
	case errors.Is(err, abtest.ErrPin), errors.Is(err, abtest.ErrSubject):
		code, status = invalidContext, http.StatusBadRequest
	default:
		s.deps.Log.Warn("a flag could not be evaluated", "path", r.URL.Path, "error", err)
		return &flagError{Code: code, Details: "the database does not answer, or refuses; the agent's log has the error"},
			status
	}
	return &flagError{Code: code, Details: err.Error()}, status
}
