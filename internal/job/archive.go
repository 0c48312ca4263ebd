package job

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// Archive keeps the raw records of the job's topics beyond their retention.
type Archive struct {
	// Location is as ParseLocation returns it; empty when the job file leaves it to the settings.
	Location string `json:"location"`
	Roll     Roll   `json:"roll"`
}

// Roll is when a file of the archive is complete: the first of the two.
type Roll struct {
	Every time.Duration `json:"every"`
	Size  int64         `json:"size"` // bytes
}

// ReplaySource is where a replay reads records from.
type ReplaySource string

// The sources of a replay. SourceAuto answers from the archive what is in it and from the log what is not.
const (
	SourceAuto    ReplaySource = "auto"
	SourceLog     ReplaySource = "log"
	SourceArchive ReplaySource = "archive"
)

// ReadsArchive reports whether records are read from the archive, of a job that keeps one or does not. A job that does
// not, and asks for auto, reads the archive that another job keeps of its topics.
func (r ReplaySource) ReadsArchive(kept bool) bool {
	switch r {
	case SourceLog:
		return false
	case SourceAuto, SourceArchive:
		return true
	}
	return kept
}

// ReadsArchive reports whether the job's records are read from the archive.
func (s *Spec) ReadsArchive() bool { return s.Replay.Source.ReadsArchive(s.Archive != nil) }

// archiveKeys takes {location: …, roll: {every: …, size: …}}.
func archiveKeys(to **Archive) strict.Value {
	a := &Archive{Roll: Roll{Every: time.Hour, Size: 64_000_000}}
	return strict.Then(strict.Mapping(
		strict.Key{Name: "location", Value: strict.Parsed("location", &a.Location, ParseLocation)},
		strict.Key{Name: "roll", Value: strict.Mapping(
			strict.Key{Name: "every", Value: duration(&a.Roll.Every, time.Second, 30*24*time.Hour)},
			strict.Key{Name: "size", Value: strict.Written("size", &a.Roll.Size, func(text string) (int64, error) {
				n, err := ParseSize(text)
				if err == nil && (n < 1_000_000 || n > 4_000_000_000) {
					return 0, strict.Want(text+" is out of range", "write 1MB to 4GB")
				}
				return n, err
			})},
		)},
	), func(*strict.Document, string) { *to = a })
}

// parseBucket is ParseLocation of s3://. Its error does not repeat a text that may hold credentials.
func parseBucket(text string) (string, error) {
	clean := strings.TrimSuffix(text, "/")
	if parts := strings.Split(clean, "/"); bucketLocation.MatchString(clean) && !slices.Contains(parts, ".") &&
		!slices.Contains(parts, "..") {
		return clean, nil
	}
	cause := "it is not the location of a bucket"
	if !strings.Contains(text, "@") {
		cause = fmt.Sprintf("%q is not the location of a bucket", text)
	}
	return "", strict.Want(cause,
		"write s3://BUCKET/PREFIX, with letters, digits and !_.*'()=- ; endpoint and credentials are in the settings")
}

// bucketLocation is s3://BUCKET[/PREFIX].
var bucketLocation = regexp.MustCompile(`^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.*'()=-]+)*$`)

// FolderLocation is the location of a folder, whose path is absolute: what ParseLocation returns of it.
func FolderLocation(folder string) string {
	return (&url.URL{Scheme: "file", Path: path.Clean(folder)}).String()
}

// LocationFolder is the path of a location that is a folder; ok is false for every other.
func LocationFolder(location string) (folder string, ok bool) {
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	return u.Path, true
}

// ParseLocation reads where files of an archive are, file:///PATH or s3://BUCKET[/PREFIX], and returns it without a
// slash at its end. PATH is that of a URL: %20 is a space and %25 a percent sign. What it returns it reads as the same
// location again.
func ParseLocation(text string) (string, error) {
	if strings.HasPrefix(text, "s3://") {
		return parseBucket(text)
	}
	wrong := strict.Want(fmt.Sprintf("%q is not a location", text),
		"write file:///PATH, with the path of a folder that every agent sees, or s3://BUCKET/PREFIX")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "file" || u.Host != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil ||
		!strings.HasPrefix(u.Path, "/") || path.Clean(u.Path) == "/" {
		return "", wrong
	}
	return FolderLocation(u.Path), nil
}
