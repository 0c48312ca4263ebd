package abhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kappactl/kappactl/abtest"
)

// badBody is a body that cannot be read.
type badBody struct {
	status       int
	code, detail string
}

func (b *badBody) Error() string { return b.detail }

// body reads a body of one of the content types. Requests of another type are refused: browsers send them across sites
// without asking.
func body(w http.ResponseWriter, r *http.Request, most int64, kinds ...string) ([]byte, *badBody) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(kinds, kind) {
		return nil, &badBody{http.StatusUnsupportedMediaType, "content_type", "send the header Content-Type: " +
			strings.Join(kinds, " or ")}
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &badBody{
			http.StatusRequestEntityTooLarge, "too_large",
			"the body is larger than the limit of this address",
		}
	case err != nil:
		return nil, &badBody{http.StatusBadRequest, "incomplete", "the body did not arrive"}
	case !utf8.Valid(text):
		return nil, &badBody{http.StatusBadRequest, "parse_error", "the body is not UTF-8"}
	}
	return text, nil
}

// items reads a list: a JSON array, or values after one another, as in NDJSON.
func items(w http.ResponseWriter, r *http.Request) ([]json.RawMessage, *badBody) {
	text, bad := body(w, r, maxBody, "application/json", "application/x-ndjson")
	if bad != nil {
		return nil, bad
	}
	var out []json.RawMessage
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		if err := json.Unmarshal(text, &out); err != nil {
			return nil, &badBody{http.StatusBadRequest, "parse_error", "the body is no JSON: " + err.Error()}
		}
	} else {
		d := json.NewDecoder(bytes.NewReader(text))
		for {
			var one json.RawMessage
			err := d.Decode(&one)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, &badBody{http.StatusBadRequest, "parse_error", "the body is no JSON: " + err.Error()}
			}
			if out = append(out, one); len(out) > maxItems {
				break
			}
		}
	}
	switch {
	case len(out) == 0:
		return nil, &badBody{http.StatusBadRequest, "empty", "the body holds nothing"}
	case len(out) > maxItems:
		return nil, &badBody{http.StatusRequestEntityTooLarge, "too_many_items", "the body holds more than 1000 items"}
	}
	return out, nil
}

// decode reads an item and refuses fields that it does not know.
func decode(text json.RawMessage, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// checkSubject refuses what a subject cannot be, and half a surrogate pair, in whose place the JSON decoder puts a
// replacement character: many subjects would become one.
func checkSubject(subject string) error {
	if strings.ContainsRune(subject, unicode.ReplacementChar) {
		return abtest.ErrSubject
	}
	return abtest.CheckSubject(subject)
}
