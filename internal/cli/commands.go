package cli

import "github.com/spf13/cobra"

// commandGroup is a heading of the help and the commands below it.
type commandGroup struct {
	title    string
	commands []*cobra.Command
}

// groupOthers is the heading of what has to do with no job.
const groupOthers = "Other commands"

// commands are all commands below the root, in the groups that help shows. A new command is a file and a line here.
func commands(a *app) []commandGroup {
	dev := newDev(a, runDev)
	dev.AddCommand(newDevLoad(a, runDevLoad))
	return []commandGroup{
		{"Begin", []*cobra.Command{
			newDemo(a, runDemo),
			dev,
			newInit(a, runInit),
			newContext(a),
			newDoctor(a, runDoctor),
			newServe(a, runServe),
		}},
		{"Write a job", []*cobra.Command{
			newNew(a, runNew),
			newCheck(a, runCheck),
			newTest(a, runTest),
			newSchema(a, runSchema),
			newAdopt(a, runAdopt),
		}},
		{"Ship a version", []*cobra.Command{
			newPlan(a, runPlan),
			newDeploy(a, runDeploy),
			newWait(a, runWait),
			newPromote(a, runPromote),
			newRollback(a, runRollback),
			newAbort(a, runAbort),
			newPause(a, runPause),
			newResume(a, runResume),
			newPin(a, runPin),
			newUnpin(a, runPin),
			newRetire(a, runRetire),
			newDrop(a, runDrop),
			newBatch(a),
			newAB(a),
		}},
		{"Look", []*cobra.Command{
			newStatus(a, runStatus),
			newWatchUI(a, runWatchUI),
			newHistory(a, runHistory),
			newReport(a, runReport),
			newCompare(a, runCompare),
			newQuery(a, runQuery),
			newDiff(a, runDiff),
			newVerify(a, runVerify),
			newDeadletter(a),
			newArchive(a),
			newSchedule(a),
		}},
		{groupOthers, []*cobra.Command{
			newCompletion(a, runCompletion),
			newMan(a, runMan),
			newVersion(a, runVersion),
		}},
	}
}
