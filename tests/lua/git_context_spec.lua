-- The contexts that git reads, in a repository whose settings name programs.

local gather = require('gather')
local neovim = require('neovim')

local dir, program

--- Runs git in the repository, or in one below it.
---@param below string
---@param ... string
local function git(below, ...)
  local command = { 'git', '-c', 'user.name=a', '-c', 'user.email=a', '-C', below, ... }
  local done = vim.system(command, { cwd = dir .. '/work' }):wait()
  same(0, done.code, done.stderr)
end

---@param name string
---@param ... string lines
local function write(name, ...)
  vim.fn.mkdir(vim.fs.dirname(dir .. '/' .. name), 'p')
  vim.fn.writefile({ ... }, dir .. '/' .. name)
end

--- Makes a repository with a submodule, whose settings name a program that writes its arguments to the file `ran`.
local function hostile()
  dir = neovim.dir()
  program = dir .. '/program'
  write('program', '#!/bin/sh', ('echo "$@" >> %s/ran'):format(dir), 'exit 1')
  vim.fn.setfperm(program, 'rwxr-xr-x')
  for _, below in ipairs({ 'sub', '.' }) do
    write(('work/%s/file'):format(below), 'one')
    write(('work/%s/same'):format(below), 'one')
    write(('work/%s/a.process'):format(below), 'one')
    write(('work/%s/a.tree'):format(below), 'one')
    write(
      ('work/%s/.gitattributes'):format(below),
      '* filter=a=b.c diff=word',
      '*.process filter=included',
      '*.tree filter=tree'
    )
    git('.', 'init', '-q', below)
    git(below, '-c', 'advice.addEmbeddedRepo=false', 'add', '.')
    git(below, 'commit', '-qm', 'one')
  end
  git('sub', 'commit', '-q', '--allow-empty', '-m', 'two')
  write(
    'signer',
    '#!/bin/sh',
    'cat >/dev/null',
    [[printf '\n[GNUPG:] SIG_CREATED \n' >&2]],
    [[printf -- '-----BEGIN PGP SIGNATURE-----\n\n-----END PGP SIGNATURE-----\n']]
  )
  vim.fn.setfperm(dir .. '/signer', 'rwxr-xr-x')
  git('.', '-c', 'gpg.program=' .. dir .. '/signer', 'commit', '-qS', '--amend', '-m', 'signed')
  write('work/staged', 'new')
  git('.', 'add', 'staged')
  for _, below in ipairs({ 'sub', '.' }) do
    write(
      ('work/%s/.git/included'):format(below),
      '[filter "included"]',
      ('process = %s included'):format(program),
      'required'
    )
    for name, value in pairs({
      ['core.fsmonitor'] = program .. ' fsmonitor',
      ['diff.external'] = program .. ' external',
      ['diff.submodule'] = 'diff',
      ['diff.word.command'] = program .. ' command',
      ['diff.word.textconv'] = program .. ' textconv',
      ['filter.a=b.c.clean'] = program .. ' clean',
      ['filter.a=b.c.required'] = 'true',
      ['gpg.program'] = program,
      ['hook.any.command'] = program .. ' hook',
      ['hook.any.event'] = 'post-index-change',
      ['include.path'] = 'included',
      ['log.showSignature'] = 'true',
    }) do
      git(below, 'config', name, value)
    end
    git(below, 'config', 'extensions.worktreeConfig', 'true')
    git(below, 'config', '--worktree', 'filter.tree.clean', program .. ' tree')
    local hook = ('%s/work/%s/.git/hooks/post-index-change'):format(dir, below)
    vim.fn.system({ 'ln', '-s', program, hook })
    write(('work/%s/file'):format(below), 'two')
    write(('work/%s/a.process'):format(below), 'two')
    write(('work/%s/a.tree'):format(below), 'two')
    vim.fn.system({ 'touch', '-d', '2001-01-01', ('%s/work/%s/same'):format(dir, below) })
  end
  local nvim = neovim.start()
  nvim:lua('vim.cmd.cd(...)', dir .. '/work')
  return nvim
end

local function nothing_ran()
  local ran = dir .. '/ran'
  same({}, vim.fn.filereadable(ran) == 1 and vim.fn.readfile(ran) or {})
end

describe('the contexts of git start no program of the repository:', function()
  it('@diff', function()
    local nvim = hostile()
    local found = gather(nvim, '@diff')
    nothing_ran()
    local text = found[1].text
    for _, name in ipairs({ 'file', 'a.process', 'a.tree' }) do
      yes(text:find(('+++ b/%s\n@@ -1 +1 @@\n-one\n+two\n'):format(name), 1, true), text)
    end
    yes(text:find('\n%-Subproject commit %x+\n%+Subproject commit %x+\n'), text)
    yes(not text:find('a/same', 1, true), text)
  end)

  it('@git:HEAD', function()
    local nvim = hostile()
    local found = gather(nvim, '@git:HEAD')
    nothing_ran()
    yes(found[1].text:find('signed', 1, true), found[1].text)
  end)

  it('@search:two', function()
    local nvim = hostile()
    local found = gather(nvim, '@search:two')
    nothing_ran()
    same('a.process\0001\0two\na.tree\0001\0two\nfile\0001\0two\n', found[1] and found[1].text)
  end)

  it('/commit', function()
    local nvim = hostile()
    nvim:lua("vim.cmd('edit .git/COMMIT_EDITMSG') vim.bo.filetype = 'gitcommit'")
    nvim:lua("vim.cmd('Co /commit')")
    nvim:wait('return #_G.sent == 1')
    nothing_ran()
    yes(nvim:sent('write_commit')[1].changes:find('+new', 1, true))
  end)
end)
