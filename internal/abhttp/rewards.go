package abhttp

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/job"
)

// clockSlack is how far the clock of a client may be ahead.
const clockSlack = 5 * time.Minute

// rewards records rewards, those of each job in one transaction. The answer has a code for each; a request that failed
// may be repeated.
func (s *Server) rewards(w http.ResponseWriter, r *http.Request) {
	list, bad := items(w, r)
	if bad != nil {
		refuse(w, bad.status, bad.code, bad.detail)
		return
	}
	out := make([]itemAnswer, len(list))
	var names []job.Name
	places, given := map[job.Name][]int{}, map[job.Name][]abtest.Reward{}
	for i, text := range list {
		name, one, err := s.reward(text)
		if err != nil {
			out[i] = itemAnswer{Code: string(abtest.RewardInvalid), Detail: err.Error()}
			continue
		}
		if len(places[name]) == 0 {
			names = append(names, name)
		}
		places[name], given[name] = append(places[name], i), append(given[name], one)
	}
	for _, name := range names {
		codes, err := abtest.Store{}.Record(r.Context(), s.deps.Pool, name, given[name])
		if err != nil && !errors.Is(err, abtest.ErrUnknownJob) {
			s.failed(w, r, err)
			return
		}
		for k, i := range places[name] {
			if out[i].Code = codeUnknownJob; err == nil {
				out[i].Code = string(codes[k])
			}
		}
	}
	write(w, http.StatusAccepted, "application/json", map[string]any{"items": out})
}

// reward reads a reward and refuses what can be none, with the cause.
func (s *Server) reward(text json.RawMessage) (job.Name, abtest.Reward, error) {
	var sent struct {
		Job     job.Name  `json:"job"`
		EventID string    `json:"event_id"`
		Subject string    `json:"subject"`
		Value   *float64  `json:"value"`
		At      time.Time `json:"ts"`
	}
	if err := decode(text, &sent); err != nil {
		return "", abtest.Reward{}, err
	}
	var err error
	switch {
	case checkSubject(sent.Subject) != nil:
		err = abtest.ErrSubject
	case checkSubject(sent.EventID) != nil:
		err = errors.New("event_id is not a text of 1 to 256 bytes without NUL")
	case sent.Value == nil || math.IsNaN(*sent.Value) || math.IsInf(*sent.Value, 0):
		err = errors.New("value is not a number")
	case sent.At.IsZero():
		err = errors.New("ts is missing")
	case sent.At.After(s.deps.Now().Add(clockSlack)):
		err = errors.New("ts is more than 5 minutes in the future")
	default:
		return sent.Job, abtest.Reward{EventID: sent.EventID, Subject: sent.Subject, Value: *sent.Value, At: sent.At}, nil
	}
	return "", abtest.Reward{}, err
}
