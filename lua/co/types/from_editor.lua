---@meta
-- The messages from Lua to the backend, as in src/protocol/from_editor.rs. tests/lua/types_spec.lua compares the names and the
-- fields with those of src/protocol/. docs/PROTOCOL.md says when each is sent.

---@class (exact) co.Context
---@field name string the word of the prompt and the file: `@buffer src/app.py`, `@file:src/main.rs`
---@field text string
---@field image? co.Image
---@field size? integer bytes of the whole text, if `text` is a part of it; never sent
---@field files? string[] the files that the editor's text is from, which the backend checks; never sent
---@field lines? string the whole lines of which `text` is a part, which the backend checks too; never sent

---@class (exact) co.Image
---@field media_type string such as `image/png`
---@field data string the bytes in base64

---@class (exact) co.Hello
---@field type 'hello'
---@field protocol integer
---@field version string
---@field settings table<string, any>
---@field begins_chat? boolean the person is about to begin a chat

---@class (exact) co.SettingsMessage
---@field type 'settings'
---@field settings table<string, any>

---@class (exact) co.Sandbox
---@field type 'sandbox'
---@field confinement 'landlock'|'subprocess'

---@class (exact) co.Prompt
---@field type 'prompt'
---@field chat integer
---@field text string
---@field cwd string
---@field context co.Context[]
---@field range? co.LineRange edits of the turn change these lines only
---@field steer? boolean it goes with the next request of the turn that runs
---@field file? co.PromptFileText the prompt file that `text` names as a slash command

---@class (exact) co.PromptFileText
---@field path? string nil if the file needs no trust
---@field text string the whole text of the file
---@field prompt string what the model gets in place of `text`

--- Asks whether the person trusts a prompt file of the workspace.
---@class (exact) co.CheckPromptFile
---@field type 'check_prompt_file'
---@field chat integer
---@field cwd string
---@field request integer
---@field name string of the slash command, without the slash
---@field path string
---@field text string the whole text of the file

---@class (exact) co.LineRange
---@field file string its real path
---@field first integer from 1
---@field last integer

---@class (exact) co.Cancel
---@field type 'cancel'
---@field chat integer

--- Asks for the next part of the text of a file under review.
---@class (exact) co.ReadReview
---@field type 'read_review'
---@field id integer of the question, or of `co.ChangesReview`
---@field file integer its place in the list of files, from 0
---@field from integer the bytes that came before

--- Keeps the answers to the parts of a file in a review of `/review`.
---@class (exact) co.KeepAnswers
---@field type 'keep_answers'
---@field id integer of `co.ChangesReview`
---@field file integer its place in the list of files, from 0
---@field answers co.PartAnswer[]

--- Asks for the part of a resumed text that belongs above the text of the chat.
---@class (exact) co.EarlierText
---@field type 'earlier_text'
---@field chat integer
---@field above integer the `above` of the part that came before

---@class (exact) co.Command
---@field type 'command'
---@field chat integer
---@field name string without its slash; `!` runs `args` in the chat
---@field args string
---@field cwd string
---@field options? co.RunOptionsMessage of `!` and `commit`

--- The person writes the buffer of the plan.
---@class (exact) co.KeepPlan
---@field type 'keep_plan'
---@field chat integer
---@field cwd string
---@field text string

--- Asks the model of a chat for a commit message.
---@class (exact) co.WriteCommit
---@field type 'write_commit'
---@field chat integer
---@field cwd string
---@field directory string of the work tree
---@field variables string[][] names and values that git gave its editor, such as `GIT_INDEX_FILE`

--- A request for a context of a prompt. `co.ContextRead` answers it.
---@class (exact) co.ReadContext
---@field type 'read_context'
---@field chat integer
---@field request integer
---@field cwd string of the window
---@field word string such as `@file:README.md`
---@field query co.ContextQuery

---@class (exact) co.ContextQuery
---@field kind 'file'|'text'|'diff'|'commit'|'search'|'skill'|'resource'|'server_prompt'|'server_arguments'|'server_addresses'|'places'
---@field path? string with `file`
---@field paths? string[] with `text`: the files that the text is from
---@field text? string with `text`: what the editor has of these files; with `search`: the text to find; with `server_arguments`: a word
---@field lines? string with `text`: the whole lines of which it is a part
---@field revision? string with `commit`
---@field name? string with `skill`, `server_prompt` and `server_arguments`
---@field server? string with `resource` and `server_...`: a tool server of the chat
---@field uri? string with `resource` and `server_addresses`
---@field arguments? string[] with `server_prompt` and `server_arguments`: `NAME=value` or plain values
---@field definitions? co.ServerPlace[] with `places`: those of a name
---@field references? co.ServerPlace[] with `places`
---@field more? integer with `places`: the number of references beyond the limit

--- The draft of a prompt changed.
---@class (exact) co.DraftMessage
---@field type 'draft'
---@field chat integer
---@field cwd string
---@field text string
---@field begins boolean it begins a transcript if the chat has none

---@class (exact) co.Close
---@field type 'close'
---@field chat integer

---@alias co.Scope 'command'|'prefix'|'prefix_saved'|'edits'|'everything'|'hosts'|'hosts_saved'|'server'|'server_saved'

---@alias co.Decision 'once'|'always'|'deny'|'edited'|'reviewed'|'chosen'|'real'|'try'|'try_first'

---@class (exact) co.AnswerDetails
---@field reason? string
---@field scope? co.Scope
---@field command? string
---@field hunks? co.HunkAnswer[]
---@field chosen? co.ChosenAnswer[]

--- The answer to a question with choices.
---@class (exact) co.ChosenAnswer
---@field choices integer[] the numbers of the choices, from 1
---@field text? string the person's own words

--- The person's answer to a hunk of a change.
---@class (exact) co.HunkAnswer
---@field accept boolean
---@field lines? string[] that the person wrote in place of the new ones
---@field comment? string for the model

---@class (exact) co.Answer
---@field type 'answer'
---@field id integer
---@field decision co.Decision
---@field reason? string
---@field scope? co.Scope
---@field command? string
---@field hunks? co.HunkAnswer[]
---@field chosen? co.ChosenAnswer[]

---@class (exact) co.Size
---@field columns integer
---@field rows integer

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
---@field builds_image? boolean
---@field trial? boolean
---@field host { shell: string[], variables: string[] } the words of the shell, and `NAME=value` for each variable

--- A request for the first lines of a file with an output. `co.OutputRead` answers it.
---@class (exact) co.ReadOutput
---@field type 'read_output'
---@field request integer
---@field file string
---@field lines integer

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

--- The answer to `co.ReadBuffers`.
---@class (exact) co.Buffers
---@field type 'buffers'
---@field request integer
---@field buffers co.BufferText[]

---@class (exact) co.BufferText
---@field file string the real path, as it was asked for
---@field text string with a line break after each line, except perhaps the last one
---@field tick integer 'changedtick'
---@field encoding string 'fileencoding'
---@field modified boolean
---@field problem? string why co cannot read or change it

--- The answer to `co.ChangeBuffer`.
---@class (exact) co.BufferChanged
---@field type? 'buffer_changed'
---@field request? integer
---@field moved? boolean it no longer has the tick, so nothing was changed
---@field problem? string why nothing was changed
---@field unsaved? string why the file does not have the change
---@field text? string what autocommands made of it when it was written
---@field diagnostics? string[] those that were not there before the change

--- The answer to `co.EditorQuery`.
---@class (exact) co.EditorAnswer
---@field type? 'editor_answer'
---@field request? integer
---@field entries? co.EditorEntry[]
---@field places? co.ServerPlace[] those of a name, whose lines the backend reads
---@field files? co.FileEdits[] those that a rename changes
---@field unit? 'utf-8'|'utf-16'|'utf-32' of the characters in `files`
---@field more? integer the number of entries or places beyond the limit
---@field problem? string why there is no answer

--- A place in a file, as a language server names it.
---@class (exact) co.ServerPlace
---@field file string
---@field row integer from 0
---@field character integer from 0, in the unit of the language server
---@field unit 'utf-8'|'utf-16'|'utf-32'

--- The edits of a language server to a file.
---@class (exact) co.FileEdits
---@field file string the real path
---@field tick? integer the 'changedtick' that they are made for, if the file is loaded
---@field edits co.PlacedEdit[]

---@class (exact) co.PlacedEdit
---@field start [integer, integer] line and character, from 0
---@field end [integer, integer]
---@field text string

---@class (exact) co.EditorEntry
---@field file string the real path
---@field line? integer from 1
---@field column? integer bytes, from 1
---@field text string

--- Plugins have hooks before a command, or no longer have any.
---@class (exact) co.Hooks
---@field type 'hooks'
---@field before_command boolean

--- The answer to `co.BeforeCommand`.
---@class (exact) co.CommandHooked
---@field type 'command_hooked'
---@field request integer
---@field refusal? string the reason why a plugin refuses the command

--- The answer to `co.EditFile`.
---@class (exact) co.FileEdited
---@field type 'file_edited'
---@field request integer
---@field problem? string the reason why the program must fail; nil if the person closed the file

--- Asks for the names that complete the argument of `/model`.
---@class (exact) co.ListModels
---@field type 'list_models'
---@field chat? integer the chat whose provider is asked
---@field head string the typed text up to its first slash, or empty

---@alias co.FromEditor co.ListModels|co.CheckPromptFile|co.ReadOutput|co.ReadContext|co.WriteCommit|co.Hooks|co.CommandHooked|co.FileEdited|co.Hello|co.SettingsMessage|co.Sandbox|co.Prompt|co.Cancel|co.Command|co.KeepPlan|co.Close|co.EarlierText|co.DraftMessage|co.Answer|co.RunRequest|co.RunInput|co.RunResize|co.CancelRun|co.KeepRun|co.Saved|co.Buffers|co.BufferChanged|co.EditorAnswer|co.ReadReview|co.KeepAnswers|co.Failed|co.AgentCall|co.CancelAgentCall

--- An agent in a terminal of Neovim calls a tool of co. `agent_call_done` answers.
---@class (exact) co.AgentCall
---@field type 'agent_call'
---@field request integer
---@field client integer the channel of the agent
---@field agent string the name that it gives itself
---@field tool string
---@field arguments string JSON
---@field cwd string

--- It no longer waits for the result.
---@class (exact) co.CancelAgentCall
---@field type 'cancel_agent_call'
---@field request integer

--- A request cannot be answered, because the handler of its message has failed.
---@class (exact) co.Failed
---@field type 'failed'
---@field request integer

---@class (exact) co.Saved
---@field type 'saved'
---@field file string the real path
