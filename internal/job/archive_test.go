package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

func TestLocationsAreAbsoluteFolders(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"file:///a/b": "file:///a/b", "file:///a/b/": "file:///a/b", "file:///a/../b": "file:///b",
		"file:///a b": "file:///a%20b", "file:///a%20b": "file:///a%20b", "file:///100%25": "file:///100%25", "file:///%2541": "file:///%2541",
		"file:///a%3Fb%23": "file:///a%3Fb%23",
		"s3://bucket":      "s3://bucket", "s3://bucket/": "s3://bucket", "s3://my.bucket-1/a/b=c/": "s3://my.bucket-1/a/b=c",
	} {
		if got, err := job.ParseLocation(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		} else if again, err := job.ParseLocation(got); err != nil || again != got {
			t.Errorf("%s, read again: %s, %v", got, again, err)
		}
	}
	for _, folder := range []string{"/a", "/a b", "/100%", "/%41", "/a?b#c", "/é"} {
		if got, ok := job.LocationFolder(job.FolderLocation(folder)); !ok || got != folder {
			t.Errorf("%s becomes %s", folder, got)
		}
	}
	for _, text := range []string{
		"", "/a", "file://a/b", "file:///", "http://a/b", "file:///a?b", "file://u:p@/a", "s3://", "s3://B", "s3:///a", "s3://ab", "s3://bucket/a//b",
		"s3://bucket/../a", "s3://bucket/./a", "s3://bucket/a b", "s3://bucket/a?b", "s3://-bucket/a", "s3://key:SECRET@bucket/a",
	} {
		if got, err := job.ParseLocation(text); err == nil {
			t.Errorf("%q is location %q", text, got)
		} else if strings.Contains(err.Error(), "SECRET") {
			t.Errorf("the error repeats a secret: %v", err)
		}
	}
}

func TestAnArchiveHasDefaultsAndIsAppliedInPlace(t *testing.T) {
	s := parse(t, plain+"archive: {location: file:///a/b/}\n")
	want := job.Archive{Location: "file:///a/b", Roll: job.Roll{Every: time.Hour, Size: 64_000_000}}
	if s.Archive == nil || *s.Archive != want {
		t.Errorf("archive %+v, want %+v", s.Archive, want)
	}
	if s.Hash(1) != hashOf(t, plain) {
		t.Error("an archive changes the hash")
	}
	if parse(t, plain).Archive != nil {
		t.Error("a file without an archive has one")
	}
	if hashOf(t, plain+"replay: {source: log}\n") == hashOf(t, plain) {
		t.Error("replay.source does not change the hash")
	}
}
