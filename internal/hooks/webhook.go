package hooks

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/kappactl/kappactl/internal/job"
)

// The headers of a webhook request.
const (
	headerEvent     = "X-Kappactl-Event"
	headerID        = "X-Kappactl-Id"
	headerSignature = "X-Kappactl-Signature"
)

// Sign returns the value of the header X-Kappactl-Signature: the HMAC-SHA256 of the body, in hex.
func Sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// post sends the facts as JSON. Status 200 to 299 means accepted. The reason never contains the URL, which may be a
// secret.
func (s *Service) post(ctx context.Context, h Hook, facts job.HookFacts) job.HookOutcome {
	body, err := json.Marshal(facts)
	if err != nil {
		return job.HookOutcome{Reason: err.Error()}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return job.HookOutcome{Reason: "the URL is invalid"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "kappactl")
	req.Header.Set(headerEvent, string(facts.Event))
	req.Header.Set(headerID, strconv.FormatInt(facts.ID, 10))
	if h.Secret != nil {
		secret, err := h.Secret(ctx)
		if err != nil {
			return job.HookOutcome{Reason: err.Error()}
		}
		if secret != "" {
			req.Header.Set(headerSignature, Sign(secret, body))
		}
	}
	resp, err := s.HTTP.Do(req)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err
		}
		return job.HookOutcome{Reason: fmt.Sprintf("request to %s failed: %v", req.URL.Host, err)}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, keptOutput))
	o := job.HookOutcome{Output: clean(answer)}
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		o.Reason = req.URL.Host + " answered " + resp.Status
	case err != nil:
		o.Reason = fmt.Sprintf("response from %s ended early: %v", req.URL.Host, err)
	}
	return o
}
