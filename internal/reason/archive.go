package reason

import (
	"strconv"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Codes of what people do with the archive of a topic, and of what happens to it.
const (
	CodeArchiveGapAccepted Code = "archive_gap_accepted"
	CodeArchiveResumed     Code = "archive_resumed"
	CodeArchivePruned      Code = "archive_pruned"
	CodeArchiveAdopted     Code = "archive_adopted"
	CodeArchiveRebuilt     Code = "archive_rebuilt"
	CodeArchiveLate        Code = "archive_late"
	CodeArchiveStopped     Code = "archive_stopped"
	CodeArchiveLostDeletes Code = "archive_lost_deletes"
)

func archiveTexts() map[Code]string {
	return map[Code]string{
		CodeArchiveGapAccepted: `the archive goes on without {{text .gap}}: it lacks these offsets`,
		CodeArchiveResumed:     `the archive of {{text .topic}} tries again: {{plural .partitions "partition" "partitions"}}`,
		CodeArchivePruned: `{{plural .files "file" "files"}} with records from before {{text .before}} removed from the archive ` +
			`of {{text .topic}}`,
		CodeArchiveAdopted: `the files at {{text .location}} are taken as the archive of {{text .topic}}`,
		CodeArchiveLate: `the archive of {{text .topic}} is late in {{plural .partitions "partition" "partitions"}} ({{list .which}}): records may be ` +
			`deleted before they are archived{{if .from}}, from {{text .from}} on{{end}}`,
		CodeArchiveStopped: `the archive of {{text .topic}} has stopped in {{plural .partitions "partition" "partitions"}} ({{list .which}}): {{text .detail}}`,
		CodeArchiveLostDeletes: `the archive of {{text .partition}} may lack deletes of keys whose values are in {{text .range}}: a computation from ` +
			`it brings back what was deleted`,
		CodeArchiveRebuilt: `{{plural .files "file was" "files were"}} put back into the archive of {{text .topic}}`,
	}
}

// ArchiveGapAccepted is a range of offsets that the archive of a topic lacks.
func ArchiveGapAccepted(gap string) Reason { return Reason{CodeArchiveGapAccepted, Args{"gap": gap}} }

// ArchiveResumed is partitions of an archive that try again after a fault.
func ArchiveResumed(topic string, partitions int) Reason {
	return Reason{CodeArchiveResumed, Args{"topic": topic, "partitions": partitions}}
}

// ArchivePruned is old files that were removed from an archive.
func ArchivePruned(topic string, files int64, before time.Time) Reason {
	return Reason{CodeArchivePruned, Args{"topic": topic, "files": files, "before": Time(before)}}
}

// ArchiveAdopted is files of another database's archive that became this one's.
func ArchiveAdopted(topic, location string) Reason {
	return Reason{CodeArchiveAdopted, Args{"topic": topic, "location": location}}
}

// ArchiveRebuilt is files that were put back into the manifest.
func ArchiveRebuilt(topic string, files int) Reason {
	return Reason{CodeArchiveRebuilt, Args{"topic": topic, "files": files}}
}

// ArchiveLate is partitions of an archive of which records may be deleted, from a time on, before they are archived;
// nil: it is not known when.
func ArchiveLate(topic string, partitions []int32, from *time.Time) Reason {
	args := ofPartitions(topic, partitions)
	if from != nil {
		args["from"] = Time(*from)
	}
	return Reason{CodeArchiveLate, args}
}

// ArchiveStopped is partitions of an archive that a fault has stopped; detail is that of the first.
func ArchiveStopped(topic string, partitions []int32, detail string) Reason {
	args := ofPartitions(topic, partitions)
	args["detail"] = detail
	return Reason{CodeArchiveStopped, args}
}

// ofPartitions are the arguments of a reason about partitions of a topic, of which it names ten.
func ofPartitions(topic string, partitions []int32) Args {
	which := make([]string, 0, len(partitions))
	for _, p := range partitions[:min(len(partitions), 10)] {
		which = append(which, strconv.Itoa(int(p)))
	}
	if len(partitions) > len(which) {
		which = append(which, "...")
	}
	return Args{"topic": topic, "partitions": len(partitions), "which": which}
}

// ArchiveLostDeletes is a range of an archived partition that holds values whose deletes were compacted away before
// they were archived.
func ArchiveLostDeletes(p job.Partition, r job.Range) Reason {
	return Reason{CodeArchiveLostDeletes, Args{"partition": p.String(), "range": r.String()}}
}
