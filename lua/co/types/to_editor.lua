---@meta
-- The messages from the backend to Lua, as in src/protocol/to_editor.rs, with what Lua adds to them. tests/lua/types_spec.lua compares the names and the
-- fields with those of src/protocol/. docs/PROTOCOL.md says when each is sent.

---@class (exact) co.Ready
---@field type 'ready'
---@field protocol integer
---@field version string

---@class (exact) co.Isolation
---@field type 'isolation'
---@field isolation string

---@class (exact) co.Refused
---@field type 'refused'
---@field message string

---@class (exact) co.Notice
---@field type 'notice'
---@field level 'info'|'warn'|'error'
---@field message string
---@field answer? boolean the person typed a command that this answers

---@class (exact) co.Append
---@field type 'append'
---@field chat integer
---@field text string

---@class (exact) co.Style
---@field line integer index into the patch's lines
---@field start integer byte
---@field end integer byte, exclusive
---@field sgr string

---@class (exact) co.Patch
---@field skipped integer
---@field from integer
---@field lines string[]
---@field styles co.Style[]

---@alias co.CallState 'waits'|'runs'|'looks'|'done'|'failed'

--- A call as the person sees it: a line, and lines below it.
---@class co.CallLine
---@field state co.CallState
---@field text string the line, which follows the sign of the state
---@field details string details for the right edge of the line
---@field lead string[] lines above the output: the rest of a command
---@field remarks string[] lines below the output
---@field block? integer the block that is its output
---@field spill? string the file with its whole output, if that is long
---@field kept? integer the call has ended: so many last lines of its output stay visible
---@field whole boolean if more lines than `kept` are below the line, all of them are folded into it
---@field diff boolean the output is a difference

---@class (exact) co.CallMessage: co.CallLine
---@field type 'call'
---@field chat integer
---@field call integer

--- A call in a part of the text of a chat.
---@class (exact) co.CallRows: co.CallLine
---@field row integer of its line
---@field output integer lines of output below its line in the text of the part
---@field skipped integer earlier lines of output, which are left out

---@class (exact) co.BlockMessage
---@field type 'block'
---@field chat integer
---@field block integer
---@field patch? co.Patch
---@field done boolean

---@alias co.StateName 'idle'|'thinking'|'streaming'|'asking'|'running'|'retrying'

---@class (exact) co.Used
---@field input integer tokens
---@field output integer tokens
---@field cached integer of the input
---@field cost? number US dollars, if a price is known
---@field at_least? boolean some prices are not known, so the whole cost is higher

---@class (exact) co.State: co.Used
---@field type? 'state'
---@field chat? integer
---@field state co.StateName
---@field detail string
---@field model string
---@field cwd string
---@field confinement string
---@field cached? integer of the input
---@field turn? co.Used
---@field window_used? integer percent of the model's context window that the last request takes
---@field commands? string[] the first lines of the commands that run in the foreground
---@field queued integer the prompts that wait for the end of the turn
---@field steering? integer the prompts that go with the next request of the turn
---@field taken_prompts integer number of prompts that no longer wait
---@field transcript? string the id of the transcript
---@field title? string empty before the first prompt
---@field unusual? string[] what waits or is not as usual, in a few words each
---@field chosen? boolean the model is not that of the settings
---@field open? co.OpenSummary nil: the person has answered all changes
---@field plan? co.PlanProgress nil: no step of the model's plan is open
---@field mode? string the mode of the chat's agent

--- The changes that the person has not answered yet, in short.
---@class (exact) co.PlanProgress
---@field done integer the number of completed steps
---@field steps integer the number of all steps

---@class (exact) co.OpenSummary
---@field changes integer
---@field files integer
---@field since? integer the time of the first one, in seconds since 1970

--- The lines of the chat's changes that the person has not answered yet.
---@class (exact) co.OpenChanges
---@field type 'open_changes'
---@field chat integer
---@field files co.OpenLines[]

---@class (exact) co.OpenLines
---@field file string
---@field lines co.NewLines[]

--- Lines that are new; if there are none, the place where lines were removed.
---@class (exact) co.NewLines
---@field first integer from 1
---@field count integer

---@class (exact) co.QuestionText
---@field lines string[]
---@field spans { row: integer, from: integer, to: integer, group: string }[]
---@field rows? { row: integer, kind: string, continues: boolean }[] the rows of a change
---@field cut? boolean a part was left out because the text is too long, and `whole` has it
---@field partial? boolean a part was left out

--- A page of the float: `question`, `menu` and `help` are about one question; `list` shows all questions, and
--- `list_help` the keys of the list.
---@alias co.QuestionPage 'question'|'menu'|'help'|'list'|'list_help'

--- An entry of the list of all questions.
---@class (exact) co.ListEntry
---@field command string the command, or the name of the file
---@field about string the chat or the file, and details
---@field not_approved_because? string the reason why `y` in the list does not approve it

--- A choice of `always`, with its key in the menu.
---@class (exact) co.ScopeChoice
---@field key string
---@field scope co.Scope
---@field about string

--- A kind of question. The float gets the text and the keys of its questions from it. `co.question.kind` has
--- the fields that most kinds share.
---@class (exact) co.QuestionKind
---@field holds_turn boolean a turn or a command of the person waits for the answer
---@field keys table<co.QuestionPage, table<string, fun(question: any, float?: co.Float): boolean?>> its own keys for each page; false: the float's own key holds
---@field title fun(question: any): string
---@field text fun(question: any, page?: co.QuestionPage): co.QuestionText without a page, that of the question
---@field folded? fun(question: any, size: { rows: integer, columns: integer }): co.QuestionText with at most so much of a command
---@field whole fun(question: any): string the text that the float may have cut
---@field footer fun(question: any): string, string its keys with words, and its keys only
---@field d fun(question: any): string what the key `d` does, in a word
---@field alone fun(question: any): string? the reason why only a key in the float itself says yes
---@field entry fun(question: any): co.ListEntry
---@field scopes fun(question: any): co.ScopeChoice[] the choices of `always`; empty if it cannot be answered so
---@field takes? table<co.Decision, true> the only decisions that it takes
---@field amend? fun(question: any, decision: co.Decision, details?: co.AnswerDetails): co.Decision, co.AnswerDetails? returns the answer to send

--- A question of any kind. Lua sets `kind`, `number` and `hidden`.
---@class co.Question
---@field kind co.QuestionKind
---@field id integer
---@field number integer the number for the person
---@field chat? integer the chat that asks; nil if none does
---@field command string the command, or `trust` and the file
---@field destructive boolean
---@field no_undo? string
---@field refused_edit? { question: integer, command: string, why: string }
---@field hidden? boolean the person hid it

---@class (exact) co.CommandQuestion: co.Question
---@field type? 'question'
---@field cwd string
---@field timeout? integer seconds; nil is no limit
---@field terminal? boolean
---@field background? boolean it runs as a job
---@field job? integer the job for whose input the command is
---@field confinement string
---@field reasons string[]
---@field run? integer the run of the person that was a trial, if no chat asks
---@field agent? string the agent in a terminal, if no chat and no run asks
---@field span? [integer, integer] the bytes of the command that the first reason is about, end exclusive
---@field prefix? string
---@field only_once? boolean no permission would hold for a later call: `always` is no answer
---@field alone? string it may reach a secret or leave the workspace: the reason why only the float says yes
---@field no_undo? string the reason why the changes of the command cannot be taken back
---@field refused_edit? { question: integer, command: string, why: string } the person's command that a deny rule forbids
---@field change? co.Change the change of a file that the question is about
---@field may_try? boolean the command can run as a trial
---@field tried? co.TrialSummary the command ran as a trial
---@field commit? co.Commit the commit that `/commit` asks about; `command` makes it
---@field hosts? co.AskedHost[] what the command, which runs, wants to reach
---@field server? co.AskedServer the tool server that `command` calls
---@field choices? co.ChoiceQuestion[] the questions that the model asks, in the place of a command
---@field review? string the file of which the person asked to change lines: the review opens at once while they look at it

--- A host that a command wants to reach.
---@class (exact) co.AskedHost
---@field host string a name or an address
---@field port integer
---@field special? string whose address it is, if it is not on the internet

--- The tool of a tool server that a call is for.
---@class (exact) co.AskedServer
---@field name string the server
---@field tool string

--- A question with choices.
---@class (exact) co.ChoiceQuestion
---@field question string
---@field choices co.OfferedChoice[]
---@field several boolean the person may choose several
---@field kind 'model'|'form'|'permission'|'plain' it says what the person may answer beside a choice

---@class (exact) co.OfferedChoice
---@field label string
---@field about? string
---@field advised boolean the model advises it
---@field is_yes? true the key of a plain yes chooses it

--- A commit before it is made.
---@class (exact) co.Commit
---@field message string
---@field files string[] each with the letter that git gives its change
---@field staged boolean they are staged already
---@field left_out string[] the files that are not part of it

--- The result of a trial.
---@class (exact) co.TrialSummary
---@field status string
---@field output string[] the last lines
---@field git? string what it changed in `.git`, which is never kept
---@field notes string[]
---@field runs_again? boolean a yes runs the command outside of a trial

--- Asks for the texts of the buffers of files.
---@class (exact) co.ReadBuffers
---@field type 'read_buffers'
---@field request integer
---@field chat? integer the chat whose turn waits for the answer
---@field files string[] real paths
---@field modified_below? string a real path: its buffer, and those of files below it, are wanted if they have unsaved changes

--- Asks for a change of a buffer.
---@class (exact) co.ChangeBuffer
---@field type 'change_buffer'
---@field request integer
---@field chat? integer the chat whose turn waits for the answer
---@field file string its real path
---@field tick integer the 'changedtick' that it must still have
---@field replacements co.Replacement[] in order
---@field final_newline boolean

--- Says that the backend no longer waits for the answer to a request.
---@class (exact) co.WithdrawRequest
---@field type 'withdraw_request'
---@field request integer

--- A program of a command of the person wants a file edited.
---@class (exact) co.EditFile
---@field type 'edit_file'
---@field request integer
---@field file string absolute
---@field line? integer of the cursor, from 1
---@field command string as the person typed it
---@field directory string the working directory of the program
---@field variables string[][] those of git that the program has

--- A file was deleted, or has another name now.
---@class (exact) co.FileGone
---@field type 'file_gone'
---@field file string its real path
---@field to? string

--- Asks about the editor.
---@class (exact) co.EditorQuery
---@field type 'editor_query'
---@field request integer
---@field topic 'state'|'diagnostics'|'quickfix'|'symbols'|'definition'|'references'|'rename'
---@field file? string the real path of the file that language servers are asked about
---@field name? string the name to look up
---@field line? integer where it stands, from 1
---@field new_name? string with `rename`

--- The answer to `co.WriteCommit`.
---@class (exact) co.CommitMessage
---@field type 'commit_message'
---@field chat integer
---@field text? string
---@field problem? string the reason why there is none

--- Asks the hooks of plugins about a command.
---@class (exact) co.BeforeCommand
---@field type 'before_command'
---@field request integer
---@field chat integer
---@field command string
---@field cwd string
---@field unasked boolean it only looks, so nobody was asked
---@field job? integer the job into which the model types `command`

---@class (exact) co.Replacement
---@field start integer the first line, from 0
---@field end integer the line after the last one
---@field lines string[]

---@class (exact) co.Change
---@field whole? boolean its parts cannot be answered, but the question can
---@field undo? boolean it takes changes of a turn back or brings them back
---@field unsaved boolean the buffer of a file has unsaved changes
---@field added integer lines
---@field removed integer lines
---@field without_lines? string the change in words if no line differs, such as `moved from a.txt`
---@field facts co.FactLine[] in the order of their kinds
---@field excerpt string the first lines that differ, with those around them; the first character of each is its mark
---@field more integer the number of the other lines
---@field files co.FileChange[] for a review; if they are too many, the only one has the changed lines of all

--- The change of a file, for a review.
---@class (exact) co.FileChange
---@field path string as it is shown
---@field added integer lines
---@field removed integer lines
---@field without_lines? string the change in words if no line differs, such as `moved from a.txt`
---@field parts integer
---@field whole? boolean it has no lines that can be accepted without the others
---@field text string the first part of its text
---@field more boolean there is more text
---@field calls? string[] in `co.ChangesReview`: for each part the calls that made it, and their approvals
---@field answers? co.PartAnswer[] in a review of `/review`: the answers that the person gave before

--- The answer of the person to a part of a change, in a review of `/review` that has not ended.
---@class (exact) co.PartAnswer
---@field part integer its number in the file
---@field accept? boolean nil: it is still open
---@field lines? string[] that the person wrote in place of the new ones
---@field comment? string

--- A property of a change that its lines do not show.
---@class (exact) co.FactLine
---@field kind 'runs'|'link'|'mode'|'bytes'|'moved'|'deleted'
---@field text string a label of four letters, a blank, and the rest

--- The changes that a chat has made, for a review of `/changes` or `/review`.
---@class (exact) co.ChangesReview
---@field type 'changes'
---@field id integer
---@field chat integer
---@field round? boolean it has the changes without an answer: each answer is sent at once
---@field files co.FileChange[]

--- The next part of the text of a file under review.
---@class (exact) co.ReviewPart
---@field type 'review_part'
---@field id integer
---@field file integer its place in the list of files, from 0
---@field from integer the bytes that came before
---@field text string
---@field more boolean

--- A question about sending the text of a file to the model. Lua sets `command` and `destructive`.
---@class (exact) co.TrustQuestion: co.Question
---@field type 'trust'
---@field name string the file
---@field path string
---@field size integer bytes
---@field text string
---@field notes string[]
---@field slash? string the slash command that sends it, the context of a skill, or `/mcp` if it is not sent but names tool servers; nil if it goes with each prompt
---@field context? boolean it is a context of one prompt

--- The answer to `co.ReadOutput`.
---@class (exact) co.OutputRead
---@field type 'output_read'
---@field request integer
---@field lines string[]

--- The result of a `co.AgentCall`.
---@class (exact) co.AgentCallDone
---@field type 'agent_call_done'
---@field request integer
---@field text string
---@field failed boolean

--- The answer to `co.ReadContext`.
---@class (exact) co.ContextRead
---@field type? 'context_read'
---@field request? integer
---@field text? string
---@field size? integer bytes of the whole file
---@field image? co.Image
---@field note? string for the name of the context
---@field problem? string the reason why there is none
---@field cancelled? boolean the prompt comes back

--- The answer to `co.CheckPromptFile`.
---@class (exact) co.PromptFileChecked
---@field type 'prompt_file_checked'
---@field request integer
---@field trusted boolean
---@field question? integer the id of the open question about it

--- The questions of the chat that have a `no_undo` have this one now, or none.
---@class (exact) co.NoUndo
---@field type 'no_undo'
---@field chat integer
---@field why? string

---@class (exact) co.Settled
---@field type 'settled'
---@field id integer
---@field decision string

---@class (exact) co.Owner
---@field chat integer
---@field job integer its number in that chat
---@field terminal boolean it has a terminal, which needs a carriage return at the end of a line

---@class (exact) co.RunStarted
---@field type 'run_started'
---@field run integer
---@field command string
---@field cwd string
---@field owner? co.Owner nil if the person started it
---@field detail? string the confinement in a few words, and a hint for a command that may want a terminal

--- The person runs a command in a terminal.
---@class (exact) co.OpenTerminal
---@field type 'open_terminal'
---@field command string
---@field cwd string

---@class (exact) co.RunOutput
---@field type 'run_output'
---@field run integer
---@field patch co.Patch

---@class (exact) co.RunData
---@field type 'run_data'
---@field run integer
---@field data string

---@class (exact) co.RunEnded
---@field type 'run_ended'
---@field run integer
---@field status string
---@field exit? integer
---@field spill? string
---@field left? boolean processes that it started continue, or the question about its trial waits

---@class (exact) co.LeftEnded
---@field type 'left_ended'
---@field run integer
---@field status string
---@field again? boolean the person wants the command of the trial for real

--- The prompts of a resumed chat, the oldest first, and its draft.
---@class (exact) co.Prompts
---@field type 'prompts'
---@field chat integer
---@field transcript string the id of the transcript
---@field prompts string[]
---@field draft? string

--- The backend has dealt with a draft.
---@class (exact) co.DraftKept
---@field type 'draft_kept'
---@field chat integer

--- The plan of a chat, for its buffer.
---@class (exact) co.Plan
---@field type 'plan'
---@field chat integer
---@field text string
---@field open? boolean the person asked for it: the buffer opens

---@class (exact) co.Unsent
---@field type 'unsent'
---@field chat integer
---@field text string

---@class (exact) co.MessageBegins
---@field type 'message_begins'
---@field chat integer
---@field at? integer the time of a prompt, in seconds since 1970

---@class (exact) co.AnswerBegins
---@field type 'answer_begins'
---@field chat integer

---@class (exact) co.SeparateAnswer
---@field type 'separate_answer'
---@field chat integer

---@class (exact) co.FoldAnswer
---@field type 'fold_answer'
---@field chat integer

---@class (exact) co.MessageRow
---@field row integer
---@field at? integer the time of a prompt, in seconds since 1970

--- A part of the text of a chat.
---@class (exact) co.TextPart
---@field text string
---@field folds? integer[][] first and last rows to fold; the last one may be below `text`
---@field answer? integer the row at which the last answer begins
---@field messages? co.MessageRow[] the messages that begin in `text`, from top to bottom
---@field calls? co.CallRows[] from top to bottom
---@field above integer the bytes of text that belong above this part

---@class (exact) co.Replace: co.TextPart
---@field type 'replace'
---@field chat integer

---@class (exact) co.Earlier: co.TextPart
---@field type 'earlier'
---@field chat integer

---@class (exact) co.QuickfixEntry
---@field file string the whole path; empty if the entry is about no file
---@field line integer
---@field text string

---@class (exact) co.Quickfix
---@field type 'quickfix'
---@field title string
---@field entries co.QuickfixEntry[]
---@field update? boolean take the place of an earlier list of `/review`, and open nothing

---@class (exact) co.Choice
---@field label string
---@field value string
---@field confirm? string a question: the value is sent after a yes only

---@class (exact) co.Choose
---@field type 'choose'
---@field chat integer
---@field name string
---@field title string
---@field choices co.Choice[]

---@class (exact) co.OpenAddress
---@field type 'open_address'
---@field address string

---@class (exact) co.AgentCommand
---@field name string
---@field about string

--- The words that complete the slash commands of a chat's agent.
---@class (exact) co.AgentWords
---@field type 'agent_words'
---@field chat integer
---@field agent? string nil if a model answers in the chat
---@field commands co.AgentCommand[]
---@field modes string[]
---@field models string[]
---@field efforts string[]

--- A prompt or a resource of a tool server.
---@class (exact) co.ServerWord
---@field name string such as `server:prompt` or `server:file:///x`
---@field about string
---@field arguments string[] the names of the arguments of a prompt; of a resource with open parts, its template

--- The words that complete what the tool servers of a chat offer.
---@class (exact) co.ServerWords
---@field type 'server_words'
---@field chat integer
---@field prompts co.ServerWord[]
---@field resources co.ServerWord[]

--- The answer to `co.ListModels`.
---@class (exact) co.Models
---@field type 'models'
---@field chat? integer
---@field head string
---@field words string[]

---@class (exact) co.Event
---@field type 'event'
---@field name string
---@field data any
