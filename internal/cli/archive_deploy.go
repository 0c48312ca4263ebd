package cli

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

// placeArchive gives an archive without a location the one of the settings.
func (a *app) placeArchive(spec *job.Spec) error {
	if spec.Archive == nil || spec.Archive.Location != "" {
		return nil
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	if s.Archive.Location == "" {
		return &job.Refusal{
			Code: job.ExitUsage, Cause: "the archive of job " + string(spec.Job) + " has no location",
			Next: "write archive.location in the job file, or set archive.location in the settings or KAPPACTL_ARCHIVE_LOCATION",
		}
	}
	spec.Archive.Location = s.Archive.Location
	return nil
}

// mayArchive refuses an archive of topics to which the brokers give no id: two lives of a topic would be mixed in it.
func (c *client) mayArchive(ctx context.Context, spec *job.Spec) error {
	if spec.Archive == nil {
		return nil
	}
	k, err := kafkaConfig(ctx, c.settings)
	if err != nil {
		return err
	}
	admin, err := kafka.NewAdmin(k)
	if err != nil {
		return err
	}
	defer admin.Close()
	short, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	_, ids, err := admin.IDs(short, spec.Source.Topics)
	if err != nil {
		return err
	}
	for _, topic := range spec.Source.Topics {
		if id, known := ids[topic]; known && !kafka.HasID(topic, id) {
			return &job.Refusal{
				Code:  job.ExitUsage,
				Cause: fmt.Sprintf("the brokers give topic %s no id, as those before Kafka 2.8: an archive could not tell it from a topic made again under its name", topic),
				Next:  "upgrade the brokers, or take archive out of the job file",
			}
		}
	}
	return nil
}
