---@meta
-- The messages between Lua and the backend; docs/PROTOCOL.md says when each is sent.

-- What is used of libuv: Neovim does not describe it.
---@class uv
---@field hrtime fun(): integer
---@field fs_stat fun(path: string): { type: string }?

---@class (exact) co.Context
---@field name string the word of the prompt and the file: `@buffer src/app.py`, `@file:src/main.rs`
---@field text string
---@field size? integer bytes of the whole piece, if `text` is only a part of it; absent once it is cut

---@class (exact) co.Hello
---@field type 'hello'
---@field protocol integer
---@field version string
---@field settings table<string, any>

---@class (exact) co.SettingsMessage
---@field type 'settings'
---@field settings table<string, any>

---@class (exact) co.Sandbox
---@field type 'sandbox'
---@field backend 'landlock'|'subprocess'

---@class (exact) co.Prompt
---@field type 'prompt'
---@field session integer
---@field text string
---@field cwd string
---@field context co.Context[]

---@class (exact) co.Cancel
---@field type 'cancel'
---@field session integer

---@class (exact) co.Command
---@field type 'command'
---@field session integer
---@field name string without its slash; `!` runs `args` in the chat
---@field args string
---@field cwd string
---@field options? co.RunOptionsMessage of `!`

---@class (exact) co.Close
---@field type 'close'
---@field session integer

---@alias co.Scope 'command'|'prefix'|'prefix_saved'|'everything'

---@alias co.Decision 'once'|'always'|'deny'|'edited'

---@class (exact) co.answer.Extra
---@field reason? string
---@field scope? co.Scope
---@field command? string

---@class (exact) co.Answer
---@field type 'answer'
---@field id integer
---@field decision co.Decision
---@field reason? string
---@field scope? co.Scope
---@field command? string

---@class (exact) co.RunRequest
---@field type 'run'
---@field run integer
---@field command string
---@field cwd string
---@field stdin? string
---@field open? boolean standard input stays open
---@field terminal? co.Size
---@field options co.RunOptionsMessage

---@class (exact) co.RunOptionsMessage
---@field environment? 'restricted'|'inherit'
---@field timeout? integer
---@field host { shell: string[], variables: string[] } words, and `NAME=value` each

---@class (exact) co.RunInput
---@field type 'run_input'
---@field run integer
---@field data? string
---@field close? boolean

---@class (exact) co.RunResize
---@field type 'run_resize'
---@field run integer
---@field size co.Size

---@class (exact) co.CancelRun
---@field type 'cancel_run'
---@field run integer

---@class (exact) co.KeepRun
---@field type 'keep_run'
---@field run integer
---@field keep boolean

---@alias co.FromEditor co.Hello|co.SettingsMessage|co.Sandbox|co.Prompt|co.Cancel|co.Command|co.Close|co.Answer|co.RunRequest|co.RunInput|co.RunResize|co.CancelRun|co.KeepRun

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

---@class (exact) co.Append
---@field type 'append'
---@field session integer
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

---@class (exact) co.BlockMessage
---@field type 'block'
---@field session integer
---@field block integer
---@field patch? co.Patch
---@field done boolean

---@alias co.StateName 'idle'|'thinking'|'streaming'|'asking'|'running'|'retrying'

---@class (exact) co.Used
---@field input integer tokens
---@field output integer tokens
---@field cached integer of the input
---@field cost? number US dollars, where the prices are known

---@class (exact) co.State
---@field type? 'state'
---@field session? integer
---@field state co.StateName
---@field detail string
---@field model string
---@field cwd string
---@field backend string
---@field input integer
---@field output integer
---@field cached? integer of the input
---@field cost? number US dollars, where the prices are known
---@field turn? co.Used
---@field commands? string[] first lines of what runs in the foreground
---@field queued integer
---@field begun integer prompts that wait no more
---@field kept? string the conversation's id in the store
---@field everything? boolean nothing is asked about

---@class (exact) co.AskText
---@field lines string[]
---@field spans { row: integer, from: integer, to: integer, group: string }[]

--- `question`, `menu` and `help` are about one question; `list` shows all that wait.
---@alias co.QuestionPage 'question'|'menu'|'help'|'list'

--- A question as the list of all questions shows it.
---@class (exact) co.ListEntry
---@field lines string[] its subject
---@field about string where it comes from
---@field not_approved_because? string the reason why the list does not approve it

--- A kind of question: the float asks it for the text and the keys of its questions.
---@class (exact) co.QuestionKind
---@field holds_turn boolean a turn waits for the answer
---@field keys table<co.QuestionPage, table<string, fun(question: any)>> the actions of its own keys, by page
---@field title fun(question: any): string
---@field text fun(question: any, page: co.QuestionPage): co.AskText
---@field footer fun(question: any): string, string its keys, in words and as letters alone
---@field entry fun(question: any): co.ListEntry
---@field scopes fun(question: any): co.Scope[] what `always` may allow; none takes no `always`
---@field reply fun(question: any, decision: co.Decision, extra: co.answer.Extra) passes an answer on

--- A question for the person, of any kind.
---@class co.Question
---@field kind co.QuestionKind
---@field id integer
---@field session? integer the chat that asks; none if the question is about no chat
---@field command string the subject of the question
---@field destructive boolean
---@field hidden? boolean set by Lua: the person put it away

---@class (exact) co.Ask: co.Question
---@field type? 'ask'
---@field cwd string
---@field timeout? integer seconds; none where it runs until it ends
---@field terminal? boolean
---@field background? boolean it goes on beside the conversation
---@field job? integer the command is what is typed into this job
---@field backend string
---@field reasons string[]
---@field span? [integer, integer] bytes of the command that the first reason speaks of, end exclusive
---@field prefix? string
---@field diff? string

--- A question whether the model may be sent the text of a file. `command` and `destructive` are set by Lua.
---@class (exact) co.TrustQuestion: co.Question
---@field type 'trust'
---@field name string the file
---@field path string
---@field size integer bytes
---@field text string
---@field notes string[]

---@class (exact) co.Settled
---@field type 'settled'
---@field id integer
---@field decision string

---@class (exact) co.Owner
---@field session integer
---@field job integer its number in that chat
---@field terminal boolean it has one, whose return key is not the end of a line

---@class (exact) co.RunStarted
---@field type 'run_started'
---@field run integer
---@field command string
---@field cwd string
---@field owner? co.Owner none where the person typed it

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
---@field left? boolean what it left running goes on

---@class (exact) co.LeftEnded
---@field type 'left_ended'
---@field run integer

---@class (exact) co.Unsent
---@field type 'unsent'
---@field session integer
---@field text string

---@class (exact) co.AnswerBegins
---@field type 'answer_begins'
---@field session integer

---@class (exact) co.FoldAnswer
---@field type 'fold_answer'
---@field session integer

---@class (exact) co.Replace
---@field type 'replace'
---@field session integer
---@field text string
---@field folds? integer[][] first and last rows of answers to fold
---@field answer? integer the row at which the last answer begins

---@class (exact) co.Choice
---@field label string
---@field value string

---@class (exact) co.Choose
---@field type 'choose'
---@field session integer
---@field name string
---@field title string
---@field choices co.Choice[]

---@class (exact) co.Event
---@field type 'event'
---@field name string
---@field data any
