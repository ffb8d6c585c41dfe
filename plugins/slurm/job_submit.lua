-- Slurm's job_submit/lua plug-in. It checks jobs that name a profile, holds them while the scheduler's service is
-- alive, and marks them for it in their AdminComment. It leaves all other jobs alone. Runs in slurmctld, whose Lua is
-- 5.1.
--
-- A profile comes from --mltcp-profile (spank_mltcp.c passes it as MLTCP_PROFILE in the job's control environment) or,
-- with sbatch, from --comment='mltcp:{...}'. It is JSON in one line, as `mltcp profile FILE` prints it:
--
--   {"phases":[{"compute_ns":150000000},{"communicate_bytes":13500000}],"rate_bps":1000000000,"flows":4}
--   {"compute_ns":150000000,"communicate_bytes":13500000}
--
-- The mark is mltcp:{"profile":{...}}, with "reason":"..." if the job is not held, and "held":true if its user has held
-- it; `mltcp scheduler --slurm` adds the plan and releases the job (docs/how-to/slurm.md).
--
-- A site that has its own script calls this one from it:
--
--   mltcp_heartbeat = "/run/mltcp/slurm.heartbeat"      -- if --slurm-heartbeat is another file
--   dofile("/usr/share/mltcp/slurm/job_submit.lua")
--   local mltcp_submit = slurm_job_submit
--   function slurm_job_submit(job, partitions, user)
--     local result = mltcp_submit(job, partitions, user)
--     if result ~= slurm.SUCCESS then return result end
--     ...
--   end

local heartbeat_file = mltcp_heartbeat or "/run/mltcp/slurm.heartbeat"
local longest_profile = 32768
local max_phases = 1000
local max_parts = 1000000 -- of heterogeneous jobs; larger numbers are Slurm's NO_VAL and INFINITE

-- Reads JSON: objects, arrays, whole numbers, true, and strings without escapes; profiles contain nothing else. Errors
-- are tables with a text, so that Lua does not add a position in this file.

local function refuse(text) error({text = text}, 0) end

local function expect(text, position)
  return string.find(text, "[^ \t\r\n]", position) or refuse("it ends too early")
end

local read_value

local function read_list(text, position, closing, read_entry)
  position = expect(text, position + 1)
  if string.sub(text, position, position) == closing then return position + 1 end
  while true do
    position = expect(text, read_entry(position))
    local sign = string.sub(text, position, position)
    if sign == closing then return position + 1 end
    if sign ~= "," then refuse("it is not JSON at character " .. position) end
    position = expect(text, position + 1)
  end
end

function read_value(text, position, depth)
  if depth > 3 then refuse("it is nested too deep") end
  position = expect(text, position)
  local sign = string.sub(text, position, position)
  if sign == "{" then
    local object = {}
    position = read_list(text, position, "}", function(at)
      local _, stop, key = string.find(text, '^"([%w_]+)"[ \t\r\n]*:', at)
      if not key then refuse("it is not JSON at character " .. at) end
      if object[key] ~= nil then refuse('it has "' .. key .. '" twice') end
      object[key], stop = read_value(text, stop + 1, depth + 1)
      return stop
    end)
    return object, position
  end
  if sign == "[" then
    local array = {is_array = true}
    position = read_list(text, position, "]", function(at)
      local value, stop = read_value(text, at, depth + 1)
      if #array == max_phases then refuse("it has more than " .. max_phases .. " phases") end
      array[#array + 1] = value
      return stop
    end)
    return array, position
  end
  local _, stop, digits = string.find(text, "^(%d+)", position)
  if digits and #digits <= 15 and not string.find(text, "^[%.eE]", stop + 1) then return tonumber(digits), stop + 1 end
  if digits then refuse("a number in it is not whole, or too large") end
  if string.find(text, "^true", position) then return true, position + 4 end
  if string.find(text, "^false", position) then return false, position + 5 end
  refuse("it is not JSON at character " .. position)
end

-- The permitted keys of a profile, in the order in which they are written.

local times = {least = 0, most = 3600e9}
local phase_keys = {
  {"compute_ns", times},
  {"communicate_bytes", {least = 1, most = 1e14}},
  {"rate_bps", {least = 1, most = 1e14}},
  {"overlap", "boolean"},
}
local profile_keys = {
  {"phases", "array"},
  {"compute_ns", times},
  {"communicate_bytes", {least = 1, most = 1e14}},
  {"rate_bps", {least = 1, most = 1e14}},
  {"period_ns", {least = 1e5, most = 3600e9}},
  {"flows", {least = 1, most = 1024}},
}

local write_phases

local function write(object, keys, what)
  if type(object) ~= "table" or object.is_array then refuse(what .. " is not an object") end
  local words, known = {}, {}
  for _, entry in ipairs(keys) do
    local key, kind = entry[1], entry[2]
    local value = object[key]
    known[key] = true
    if value == nil then -- is omitted
    elseif kind == "array" then
      words[#words + 1] = '"' .. key .. '":' .. write_phases(value)
    elseif kind == "boolean" then
      if type(value) ~= "boolean" then refuse(what .. ': "' .. key .. '" is neither true nor false') end
      words[#words + 1] = '"' .. key .. '":' .. tostring(value)
    else
      if type(value) ~= "number" or value < kind.least or value > kind.most then
        refuse(string.format('%s: "%s" is not a whole number from %.0f to %.0f', what, key, kind.least, kind.most))
      end
      words[#words + 1] = string.format('"%s":%.0f', key, value)
    end
  end
  for key in pairs(object) do
    if not known[key] then refuse(what .. ': "' .. key .. '" is not a known key') end
  end
  return "{" .. table.concat(words, ",") .. "}"
end

function write_phases(array)
  if type(array) ~= "table" or not array.is_array or #array == 0 then refuse('"phases" is not an array of phases') end
  local words, sends = {}, false
  for number, phase in ipairs(array) do
    words[number] = write(phase, phase_keys, "phase " .. number)
    if (phase.compute_ns == nil) == (phase.communicate_bytes == nil) then
      refuse("phase " .. number .. ' needs one of "compute_ns" and "communicate_bytes"')
    end
    sends = sends or phase.communicate_bytes ~= nil
  end
  if not sends then refuse('no phase has "communicate_bytes"') end
  return "[" .. table.concat(words, ",") .. "]"
end

-- The profile in its marked form; or nil and the reason why it is invalid.
local function checked(text)
  if #text > longest_profile then return nil, "it is longer than " .. longest_profile .. " bytes" end
  local fine, result = pcall(function()
    local object, stop = read_value(text, 1, 0)
    if string.find(text, "[^ \t\r\n]", stop) then refuse("it has text after its end") end
    local written = write(object, profile_keys, "the profile")
    if (object.phases == nil) == (object.communicate_bytes == nil) then
      refuse('it needs "phases", or "compute_ns" and "communicate_bytes"')
    end
    if object.phases ~= nil and object.compute_ns ~= nil then refuse('"compute_ns" must be in its phases') end
    return written
  end)
  if fine then return result end
  return nil, type(result) == "table" and result.text or "it is not understood"
end

-- The text of the profile that a job names; nil: none.
local function profile_of(job)
  local environment = job.spank_job_env
  if type(environment) == "table" then
    for _, entry in pairs(environment) do
      local text = type(entry) == "string" and string.match(entry, "^MLTCP_PROFILE=(.*)$")
      if text then return text end
    end
  end
  if type(job.comment) ~= "string" then return nil end
  -- Up to the last brace, after which a site may have its own text. Without a closing brace it is refused, not ignored.
  return string.match(job.comment, "^mltcp:({.*})") or string.match(job.comment, "^mltcp:({.*)")
end

-- Why jobs cannot be planned now; nil: they can. The file contains the Unix time of its writing and its validity
-- period.
local function trouble()
  local file = io.open(heartbeat_file, "r")
  local written, holds
  if file then
    written, holds = string.match(file:read(100) or "", "^(%d+) (%d+)")
    file:close()
  end
  if not written then return "the scheduler's service does not run" end
  local age = os.time() - tonumber(written)
  if age > tonumber(holds) or age < -tonumber(holds) then return "the scheduler's service does not answer" end
  return nil
end

function slurm_job_submit(job, _, _)
  local text = profile_of(job)
  if not text then return slurm.SUCCESS end
  local profile, objection = checked(text)
  if not profile then
    slurm.log_user("MLTCP: this is not a job's profile: %s; to check it, run `mltcp profile FILE`", objection)
    return slurm.ERROR
  end
  local reason
  if job.array_inx ~= nil then
    reason = "job arrays are not placed; submit their jobs one by one"
  elseif type(job.het_job_offset) == "number" and job.het_job_offset < max_parts then -- otherwise it is NO_VAL
    reason = "heterogeneous jobs are not placed; submit their parts one by one"
  else
    reason = trouble()
  end
  local held = job.priority == 0 -- by the user: sbatch -H
  local mark = '{"profile":' .. profile .. (held and ',"held":true' or "")
    .. (reason and ',"reason":"' .. reason .. '"}' or "}")
  -- An older mark belongs to another profile.
  local others = string.gsub(job.admin_comment or "", "%s*mltcp:%b{}", "")
  job.admin_comment = (others ~= "" and others .. " " or "") .. "mltcp:" .. mark
  -- Marks jobs whose profile came as a comment for spank_mltcp.c.
  if job.environment ~= nil then job.environment["MLTCP_SLURM"] = "1" end
  if reason then
    slurm.log_user("MLTCP: the job runs without time slots: %s", reason)
  elseif held then
    slurm.log_user("MLTCP: the job is held by its user, and not placed; when released, it gets a plan for the nodes where it starts")
  else
    job.priority = 0
  end
  return slurm.SUCCESS
end

function slurm_job_modify() return slurm.SUCCESS end

return slurm.SUCCESS
