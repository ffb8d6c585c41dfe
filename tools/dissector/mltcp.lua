-- Dissector of MLTCP packets for Wireshark and tshark: every field of the header and of all frames of version 5, as
-- transport/wire.h describes them. Load it with "-X lua_script:mltcp.lua", or from Wireshark's folder of Lua plug-ins.
--
-- Packets are recognised by their content, on any UDP port; those on the ports of the preferences are not tested.
-- Lengths are not trusted: they are compared with the length of the packet, and with the part that was captured.

local bits = bit or bit32 or require("bit")

local HEADER_BYTES = 36
local MAGIC = 0xA3
local MAX_RANGES = 32
local OLDEST_VERSION = 3 -- with this header
local NEWEST_VERSION = 4

local mltcp = Proto("mltcp", "MLTCP transport")

local frame_types = {
  [1] = "DATA", [2] = "ACK", [3] = "CREDIT", [4] = "PING", [5] = "CONNECT", [6] = "ACCEPT", [7] = "CLOSE",
  [8] = "RETRY", [9] = "TOKEN", [10] = "RESET", [12] = "PADDING"
}
local close_reasons = {
  [0] = "done", [1] = "refused", [2] = "full", [3] = "version", [4] = "aborted", [5] = "idle", [6] = "violation"
}
local checksum_states = { [0] = "bad", [1] = "good", [2] = "not checked" }
local set_or_not = { "set", "not set" }

local f = {
  magic = ProtoField.uint8("mltcp.magic", "Magic and header version", base.HEX),
  flags = ProtoField.uint8("mltcp.flags", "Flags", base.HEX),
  full_integrity = ProtoField.bool("mltcp.flags.full_integrity", "Checksum covers the payload", 8, set_or_not, 0x01),
  ack_now = ProtoField.bool("mltcp.flags.ack_now", "Acknowledge at once", 8, set_or_not, 0x02),
  has_job = ProtoField.bool("mltcp.flags.has_job", "Data of a job", 8, set_or_not, 0x08),
  ack_ratio_log = ProtoField.uint8("mltcp.flags.ack_ratio_log2", "Ack ratio asked for, as a power of two", base.DEC, nil,
    0x70),
  ack_ratio = ProtoField.uint8("mltcp.ack_ratio", "Packets for each acknowledgement"),
  covered = ProtoField.uint16("mltcp.covered", "Covered length"),
  checksum = ProtoField.uint32("mltcp.checksum", "Checksum (CRC-32C)", base.HEX),
  checksum_status = ProtoField.uint8("mltcp.checksum.status", "Checksum status", base.DEC, checksum_states),
  tag = ProtoField.uint64("mltcp.tag", "Tag of the destination connection", base.HEX),
  connection = ProtoField.uint32("mltcp.connection", "Destination connection", base.HEX),
  span = ProtoField.uint32("mltcp.span", "Span"),
  packet_number = ProtoField.uint32("mltcp.packet_number", "Packet number (low 32 bits)"),
  oldest = ProtoField.uint32("mltcp.oldest_tracked", "Oldest packet number that is tracked"),
  job = ProtoField.uint32("mltcp.job", "Job"),
  arrival = ProtoField.uint32("mltcp.arrival", "Arrival of the acknowledged packet, ns modulo 2^32"),
  iteration = ProtoField.uint16("mltcp.iteration", "Iteration (low 16 bits)"),
  progress = ProtoField.uint16("mltcp.progress", "Progress in 1/65535"),
  bytes_ratio = ProtoField.double("mltcp.bytes_ratio", "Bytes ratio"),

  frame = ProtoField.none("mltcp.frame", "Frame"),
  type = ProtoField.uint8("mltcp.frame.type", "Type", base.DEC, frame_types),

  data_flags = ProtoField.uint8("mltcp.data.flags", "Flags", base.HEX),
  data_last = ProtoField.bool("mltcp.data.last", "Last of its message", 8, set_or_not, 0x01),
  data_length = ProtoField.uint16("mltcp.data.length", "Length"),
  data_message = ProtoField.uint32("mltcp.data.message", "Message"),
  data_offset = ProtoField.uint32("mltcp.data.offset", "Offset"),
  data_bytes = ProtoField.bytes("mltcp.data.bytes", "Bytes"),

  ack_range_count = ProtoField.uint8("mltcp.ack.range_count", "Ranges"),
  ack_hops = ProtoField.uint8("mltcp.ack.hops", "Hops of the latest packet (0: not known)"),
  ack_flags = ProtoField.uint8("mltcp.ack.flags", "Flags", base.HEX),
  ack_has_credit = ProtoField.bool("mltcp.ack.has_credit", "Has credit", 8, set_or_not, 0x01),
  ack_has_whole = ProtoField.bool("mltcp.ack.has_whole", "Has whole messages in place of ECT(1)", 8, set_or_not, 0x02),
  ack_has_marks = ProtoField.bool("mltcp.ack.has_marks", "Has marks", 8, set_or_not, 0x04),
  ack_delay = ProtoField.uint32("mltcp.ack.delay_ns", "Delay in ns"),
  ack_largest = ProtoField.uint64("mltcp.ack.largest", "Largest packet number"),
  ack_ect0 = ProtoField.uint32("mltcp.ack.ect0_packets", "ECT(0) packets"),
  ack_ect1 = ProtoField.uint32("mltcp.ack.ect1_packets", "ECT(1) packets"),
  ack_whole = ProtoField.uint32("mltcp.ack.whole", "Whole messages"),
  ack_ce = ProtoField.uint32("mltcp.ack.ce_packets", "CE packets"),
  ack_ce_bytes = ProtoField.uint32("mltcp.ack.ce_bytes", "CE bytes"),
  ack_first_length = ProtoField.uint32("mltcp.ack.first_length", "First range length less 1"),
  ack_credit = ProtoField.uint32("mltcp.ack.credit", "Credit (buffers posted)"),
  ack_marks = ProtoField.uint64("mltcp.ack.marks", "Marked packets (bit n: the largest number less n)", base.HEX),
  ack_range = ProtoField.none("mltcp.ack.range", "Range"),
  ack_gap = ProtoField.uint32("mltcp.ack.gap", "Gap less 1"),
  ack_length = ProtoField.uint32("mltcp.ack.length", "Length less 1"),
  ack_range_first = ProtoField.uint64("mltcp.ack.range.first", "First packet number"),
  ack_range_last = ProtoField.uint64("mltcp.ack.range.last", "Last packet number"),

  credit_flags = ProtoField.uint8("mltcp.credit.flags", "Flags", base.HEX),
  credit_final = ProtoField.bool("mltcp.credit.final", "Final", 8, set_or_not, 0x01),
  credit_reserved = ProtoField.uint16("mltcp.credit.reserved", "Reserved", base.HEX),
  credit_messages = ProtoField.uint32("mltcp.credit.messages", "Buffers posted"),

  ping_reserved = ProtoField.uint64("mltcp.ping.reserved", "Reserved", base.HEX),

  version = ProtoField.uint8("mltcp.version", "Protocol version"),
  max_packet = ProtoField.uint16("mltcp.max_packet", "Longest packet"),
  source_connection = ProtoField.uint32("mltcp.source_connection", "Source connection", base.HEX),
  first_credit = ProtoField.uint32("mltcp.credit", "Credit"),
  own_tag = ProtoField.uint64("mltcp.own_tag", "Tag that the sender wants to see", base.HEX),
  min_version = ProtoField.uint8("mltcp.version.least", "Least version spoken"),
  highest_version = ProtoField.uint8("mltcp.version.highest", "Highest version spoken"),
  paths = ProtoField.uint8("mltcp.paths", "Path values of the sender's packets less 1"),

  cookie = ProtoField.uint64("mltcp.cookie", "Cookie", base.HEX),
  trimmed_reserved = ProtoField.uint24("mltcp.trimmed.reserved", "Reserved", base.HEX),
  trimmed_largest = ProtoField.uint64("mltcp.trimmed.largest", "Largest packet number"),
  trimmed_map = ProtoField.uint64("mltcp.trimmed.map", "Trimmed packets (bit n: the largest number less n)", base.HEX),
  padding_length = ProtoField.uint16("mltcp.padding.length", "Length"),
  padding_bytes = ProtoField.bytes("mltcp.padding.bytes", "Bytes without meaning"),

  reset_connection = ProtoField.uint32("mltcp.reset.connection", "Unknown connection", base.HEX),

  close_reserved = ProtoField.uint8("mltcp.close.reserved", "Reserved", base.HEX),
  close_reason = ProtoField.uint16("mltcp.close.reason", "Reason", base.DEC, close_reasons),
}
mltcp.fields = f

local e = {
  cut = ProtoExpert.new("mltcp.cut", "The capture kept only the beginning of this packet", expert.group.UNDECODED,
    expert.severity.NOTE),
  malformed = ProtoExpert.new("mltcp.malformed", "Malformed packet", expert.group.MALFORMED, expert.severity.ERROR),
  checksum = ProtoExpert.new("mltcp.checksum.bad", "Bad checksum", expert.group.CHECKSUM, expert.severity.ERROR),
  version = ProtoExpert.new("mltcp.version.unknown", "A version that this dissector does not know",
    expert.group.PROTOCOL, expert.severity.WARN),
  closed = ProtoExpert.new("mltcp.closed", "Connection ends", expert.group.SEQUENCE, expert.severity.CHAT),
}
mltcp.experts = e

mltcp.prefs.ports = Pref.range("UDP ports", "", "Whose packets are MLTCP's, whatever they look like", 65535)
mltcp.prefs.heuristic = Pref.bool("Recognise packets on other ports", true, "By their header")
mltcp.prefs.checksum = Pref.bool("Check checksums", true, "CRC-32C of header and frames")

-- ---- CRC-32C (RFC 3720, appendix B.4), reflected ---------------------------------------------------------------------

local crc_table = {}
for i = 0, 255 do
  local crc = i
  for _ = 1, 8 do
    if bits.band(crc, 1) == 1 then
      crc = bits.bxor(bits.rshift(crc, 1), 0x82F63B78)
    else
      crc = bits.rshift(crc, 1)
    end
  end
  crc_table[i] = crc
end

local function crc32c(tvb, length)
  local bytes = tvb:range(0, length):bytes()
  local crc = 0xFFFFFFFF
  for i = 0, length - 1 do
    local byte = bytes:get_index(i)
    if i >= 4 and i < 8 then byte = 0 end -- its own field counts as zero
    crc = bits.bxor(bits.rshift(crc, 8), crc_table[bits.band(bits.bxor(crc, byte), 0xFF)])
  end
  return bits.bnot(crc)
end

-- ---- frames ----------------------------------------------------------------------------------------------------------

-- A cursor over a packet: its position, the length of the packet, and the length captured.
local Walk = {}
Walk.__index = Walk

-- Whether `size` more bytes exist. If not, adds the reason to the tree.
function Walk:has(size)
  if self.at + size > self.reported then
    self.tree:add_proto_expert_info(e.malformed, "The packet ends within a frame")
    return false
  end
  if self.at + size > self.captured then
    self.tree:add_proto_expert_info(e.cut)
    return false
  end
  return true
end

local function frame_tree(walk, name, size)
  local tree = walk.tree:add(f.frame, walk.tvb(walk.at, size))
  tree:set_text(name)
  tree:add(f.type, walk.tvb(walk.at, 1))
  return tree
end

local function add_u64(tree, field, range, value)
  return tree:add(field, range, value):set_generated()
end

local function data_frame(walk)
  if not walk:has(12) then return false end
  local tvb, at = walk.tvb, walk.at
  local length = tvb(at + 2, 2):le_uint()
  local message, offset = tvb(at + 4, 4):le_uint(), tvb(at + 8, 4):le_uint()
  local last = bits.band(tvb(at + 1, 1):uint(), 1) == 1
  local rest = walk.reported - at - 12
  local kept = math.min(length, math.max(walk.captured - at - 12, 0))
  local text = string.format("DATA message %u, offset %u, %u bytes%s", message, offset, length, last and ", last" or "")
  local tree = frame_tree(walk, text, 12 + kept)
  local flags = tree:add(f.data_flags, tvb(at + 1, 1))
  flags:add(f.data_last, tvb(at + 1, 1))
  tree:add_le(f.data_length, tvb(at + 2, 2))
  tree:add_le(f.data_message, tvb(at + 4, 4))
  tree:add_le(f.data_offset, tvb(at + 8, 4))
  if kept > 0 then tree:add(f.data_bytes, tvb(at + 12, kept)) end
  walk:tell(string.format("DATA %u+%u%s", message, offset, last and " last" or ""))
  walk.data = walk.data + length
  if length > rest then
    tree:add_proto_expert_info(e.malformed, "The data is longer than the packet")
    return false
  end
  if kept < length then
    tree:add_proto_expert_info(e.cut)
    return false
  end
  walk.at = at + 12 + length
  return true
end

local function add_range(tree, range, first, last)
  add_u64(tree, f.ack_range_first, range, first)
  add_u64(tree, f.ack_range_last, range, last)
end

local function ack_frame(walk)
  if not walk:has(36) then return false end
  local tvb, at = walk.tvb, walk.at
  local count, flags = tvb(at + 1, 1):uint(), tvb(at + 3, 1):uint()
  local has_credit, has_whole = bits.band(flags, 1) ~= 0, bits.band(flags, 2) ~= 0
  local has_marks = bits.band(flags, 4) ~= 0
  local front = 36 + (has_credit and 4 or 0) + (has_marks and 8 or 0)
  local size = front + math.max(count - 1, 0) * 8
  local kept = math.min(size, walk.captured - at)
  local last = tvb(at + 8, 8):le_uint64()
  local length = UInt64(tvb(at + 32, 4):le_uint(), 0)
  local tree = frame_tree(walk, "ACK up to " .. tostring(last), kept)
  tree:add(f.ack_range_count, tvb(at + 1, 1))
  tree:add(f.ack_hops, tvb(at + 2, 1))
  local flag_tree = tree:add(f.ack_flags, tvb(at + 3, 1))
  flag_tree:add(f.ack_has_credit, tvb(at + 3, 1))
  flag_tree:add(f.ack_has_whole, tvb(at + 3, 1))
  flag_tree:add(f.ack_has_marks, tvb(at + 3, 1))
  tree:add_le(f.ack_delay, tvb(at + 4, 4))
  tree:add_le(f.ack_largest, tvb(at + 8, 8))
  tree:add_le(f.ack_ect0, tvb(at + 16, 4))
  tree:add_le(has_whole and f.ack_whole or f.ack_ect1, tvb(at + 20, 4))
  tree:add_le(f.ack_ce, tvb(at + 24, 4))
  tree:add_le(f.ack_ce_bytes, tvb(at + 28, 4))
  tree:add_le(f.ack_first_length, tvb(at + 32, 4))
  if count == 0 or count > MAX_RANGES then
    tree:add_proto_expert_info(e.malformed, "An acknowledgement has 1 to 32 ranges")
    return false
  end
  if length > last then
    tree:add_proto_expert_info(e.malformed, "A range begins below packet number 0")
    return false
  end
  add_range(tree, tvb(at + 32, 4), last - length, last)
  walk:tell("ACK " .. tostring(last - length) .. "-" .. tostring(last) .. (count > 1 and ", ..." or ""))
  if not walk:has(front) then return false end
  if has_credit then tree:add_le(f.ack_credit, tvb(at + 36, 4)) end
  if has_marks then tree:add_le(f.ack_marks, tvb(at + front - 8, 8)) end
  for number = 1, count - 1 do
    local here = at + front + (number - 1) * 8
    if not walk:has(here + 8 - at) then return false end
    local range = tree:add(f.ack_range, tvb(here, 8))
    range:add_le(f.ack_gap, tvb(here, 4))
    range:add_le(f.ack_length, tvb(here + 4, 4))
    local step = UInt64(tvb(here, 4):le_uint(), 0) + UInt64(2, 0)
    local first = last - length
    length = UInt64(tvb(here + 4, 4):le_uint(), 0)
    if step > first or length > first - step then
      range:add_proto_expert_info(e.malformed, "A range begins below packet number 0")
      return false
    end
    last = first - step
    range:set_text("Range " .. tostring(last - length) .. " to " .. tostring(last))
    add_range(range, tvb(here, 8), last - length, last)
  end
  walk.at = at + size
  return true
end

local function credit_frame(walk)
  if not walk:has(8) then return false end
  local tvb, at = walk.tvb, walk.at
  local messages, final = tvb(at + 4, 4):le_uint(), bits.band(tvb(at + 1, 1):uint(), 1) == 1
  local tree = frame_tree(walk, string.format("CREDIT %u%s", messages, final and ", final" or ""), 8)
  tree:add(f.credit_flags, tvb(at + 1, 1)):add(f.credit_final, tvb(at + 1, 1))
  tree:add_le(f.credit_reserved, tvb(at + 2, 2))
  tree:add_le(f.credit_messages, tvb(at + 4, 4))
  walk:tell(string.format("CREDIT %u", messages))
  walk.at = at + 8
  return true
end

local function ping_frame(walk)
  if not walk:has(8) then return false end
  local tree = frame_tree(walk, "PING", 8)
  tree:add_le(f.ping_reserved, walk.tvb(walk.at + 1, 7))
  walk:tell("PING")
  walk.at = walk.at + 8
  return true
end

local function introduction_frame(walk, name)
  local size = 24
  if not walk:has(size) then return false end
  local tvb, at = walk.tvb, walk.at
  local version = tvb(at + 1, 1):uint()
  local tree = frame_tree(walk, string.format("%s from connection 0x%08x", name, tvb(at + 4, 4):le_uint()), size)
  local item = tree:add(f.version, tvb(at + 1, 1))
  if version < OLDEST_VERSION or version > NEWEST_VERSION then item:add_proto_expert_info(e.version) end
  tree:add_le(f.max_packet, tvb(at + 2, 2))
  tree:add_le(f.source_connection, tvb(at + 4, 4))
  tree:add_le(f.first_credit, tvb(at + 8, 4))
  tree:add_le(f.own_tag, tvb(at + 12, 8))
  if name == "CONNECT" then tree:add(f.min_version, tvb(at + 20, 1)) end
  tree:add(f.highest_version, tvb(at + (name == "CONNECT" and 21 or 20), 1))
  tree:add(f.paths, tvb(at + (name == "CONNECT" and 22 or 21), 1))
  walk:tell(string.format("%s version %u", name, version))
  walk.at = at + size
  return true
end

local function close_frame(walk)
  if not walk:has(4) then return false end
  local reason = walk.tvb(walk.at + 2, 2):le_uint()
  local name = close_reasons[reason] or "done"
  local tree = frame_tree(walk, "CLOSE: " .. name, 4)
  tree:add(f.close_reserved, walk.tvb(walk.at + 1, 1))
  tree:add_le(f.close_reason, walk.tvb(walk.at + 2, 2))
  tree:add_proto_expert_info(e.closed, "Connection ends: " .. name)
  walk:tell("CLOSE " .. name)
  walk.at = walk.at + 4
  return true
end

local function cookie_frame(walk, name)
  if not walk:has(12) then return false end
  local tree = frame_tree(walk, name, 12)
  tree:add_le(f.cookie, walk.tvb(walk.at + 4, 8))
  walk:tell(name)
  walk.at = walk.at + 12
  return true
end

local function reset_frame(walk)
  if not walk:has(8) then return false end
  local text = string.format("RESET of connection 0x%08x", walk.tvb(walk.at + 4, 4):le_uint())
  local tree = frame_tree(walk, text, 8)
  tree:add_le(f.reset_connection, walk.tvb(walk.at + 4, 4))
  tree:add_proto_expert_info(e.closed, "Connection is not known (any more)")
  walk:tell(text)
  walk.at = walk.at + 8
  return true
end

local function trimmed_frame(walk)
  if not walk:has(20) then return false end
  local largest = walk.tvb(walk.at + 4, 8):le_uint64()
  local text = "TRIMMED up to " .. tostring(largest)
  local tree = frame_tree(walk, text, 20)
  tree:add_le(f.trimmed_reserved, walk.tvb(walk.at + 1, 3))
  tree:add_le(f.trimmed_largest, walk.tvb(walk.at + 4, 8))
  tree:add_le(f.trimmed_map, walk.tvb(walk.at + 12, 8))
  walk:tell(text)
  walk.at = walk.at + 20
  return true
end

local function padding_frame(walk)
  if not walk:has(4) then return false end
  local length = walk.tvb(walk.at + 2, 2):le_uint()
  if not walk:has(4 + length) then return false end
  local tree = frame_tree(walk, string.format("PADDING of %u bytes", length), 4 + length)
  tree:add_le(f.padding_length, walk.tvb(walk.at + 2, 2))
  if length > 0 then tree:add(f.padding_bytes, walk.tvb(walk.at + 4, length)) end
  walk:tell(string.format("PADDING %u", length))
  walk.at = walk.at + 4 + length
  return true
end

local frame_dissectors = {
  [1] = data_frame,
  [2] = ack_frame,
  [3] = credit_frame,
  [4] = ping_frame,
  [5] = function(walk) return introduction_frame(walk, "CONNECT") end,
  [6] = function(walk) return introduction_frame(walk, "ACCEPT") end,
  [7] = close_frame,
  [8] = function(walk) return cookie_frame(walk, "RETRY") end,
  [9] = function(walk) return cookie_frame(walk, "TOKEN") end,
  [10] = reset_frame,
  [12] = padding_frame,
  [13] = trimmed_frame,
}

-- ---- a packet ---------------------------------------------------------------------------------------------------------

local MAX_SHOWN_FRAMES = 4 -- frames in the info column

function Walk:tell(text)
  self.frames = self.frames + 1
  if self.frames <= MAX_SHOWN_FRAMES then
    self.info = self.info .. (self.info ~= "" and "; " or "") .. text
  elseif self.frames == MAX_SHOWN_FRAMES + 1 then
    self.info = self.info .. "; ..."
  end
end

local function add_checksum(tvb, tree, covered, captured, reported)
  tree:add_le(f.checksum, tvb(4, 4))
  local full = bits.band(tvb(1, 1):uint(), 1) ~= 0
  local length = full and reported or covered
  local state = 2
  if mltcp.prefs.checksum and covered >= HEADER_BYTES and length <= captured then
    state = bits.tobit(crc32c(tvb, length)) == bits.tobit(tvb(4, 4):le_uint()) and 1 or 0
  end
  local item = tree:add(f.checksum_status, tvb(4, 4), state)
  item:set_generated()
  if state == 0 then item:add_proto_expert_info(e.checksum) end
end
if not bits.tobit then bits = setmetatable({ tobit = function(x) return bit32.band(x, 0xFFFFFFFF) end }, { __index = bits }) end

local function dissect(tvb, pinfo, root)
  local captured, reported = tvb:captured_len(), tvb:reported_len()
  pinfo.cols.protocol = "MLTCP"
  local tree = root:add(mltcp, tvb())
  if captured < HEADER_BYTES then
    pinfo.cols.info = "Cut short"
    if reported < HEADER_BYTES then
      tree:add_proto_expert_info(e.malformed, "The packet is shorter than a header")
    else
      tree:add_proto_expert_info(e.cut)
    end
    return captured
  end

  local flags, covered = tvb(1, 1):uint(), tvb(2, 2):le_uint()
  local number, span = tvb(20, 4):le_uint(), tvb(24, 4):le_uint()
  tree:add(f.magic, tvb(0, 1))
  local flag_tree = tree:add(f.flags, tvb(1, 1))
  flag_tree:add(f.full_integrity, tvb(1, 1))
  flag_tree:add(f.ack_now, tvb(1, 1))
  flag_tree:add(f.has_job, tvb(1, 1))
  flag_tree:add(f.ack_ratio_log, tvb(1, 1))
  tree:add(f.ack_ratio, tvb(1, 1), 2 ^ bits.band(bits.rshift(flags, 4), 7)):set_generated()
  local covered_item = tree:add_le(f.covered, tvb(2, 2))
  add_checksum(tvb, tree, covered, captured, reported)
  tree:add_le(f.tag, tvb(8, 8))
  tree:add_le(f.connection, tvb(16, 4))
  tree:add_le(f.packet_number, tvb(20, 4))
  tree:add_le(f.span, tvb(24, 4))
  tree:add(f.oldest, tvb(24, 4), (number - span) % 0x100000000):set_generated()
  local has_job = bits.band(flags, 8) ~= 0
  tree:add_le(has_job and f.job or f.arrival, tvb(28, 4))
  tree:add_le(f.iteration, tvb(32, 2))
  tree:add_le(f.progress, tvb(34, 2))
  if has_job then tree:add(f.bytes_ratio, tvb(34, 2), tvb(34, 2):le_uint() / 65535):set_generated() end

  if tvb(0, 1):uint() ~= MAGIC then
    tree:add_proto_expert_info(e.malformed, "Another version of the header")
    pinfo.cols.info = "Another version of the header"
    return captured
  end
  if covered < HEADER_BYTES or covered > reported then
    covered_item:add_proto_expert_info(e.malformed, "The covered length is not one of this packet")
  end

  local walk = setmetatable({ tvb = tvb, tree = tree, at = HEADER_BYTES, captured = captured, reported = reported,
    info = "", frames = 0, data = 0 }, Walk)
  while walk.at < reported do
    if walk.at >= captured then
      tree:add_proto_expert_info(e.cut)
      break
    end
    local dissect = frame_dissectors[tvb(walk.at, 1):uint()]
    if dissect == nil then
      tree:add(f.type, tvb(walk.at, 1)):add_proto_expert_info(e.malformed, "There is no such frame")
      break
    end
    if not dissect(walk) then break end
  end

  local info = "#" .. tostring(number) .. "  " .. walk.info
  if walk.data > 0 then info = info .. string.format("  (%u bytes)", walk.data) end
  if has_job then
    info = info .. string.format("  job %u iteration %u %.0f%%", tvb(28, 4):le_uint(), tvb(32, 2):le_uint(),
      tvb(34, 2):le_uint() / 655.35)
  end
  pinfo.cols.info = info
  tree:append_text(", packet " .. tostring(number))
  return captured
end

mltcp.dissector = dissect

-- Recognises a packet by the magic, a valid covered length, only defined flags, and a frame.
local function looks_like_mltcp(tvb)
  local captured, reported = tvb:captured_len(), tvb:reported_len()
  if captured < HEADER_BYTES or reported <= HEADER_BYTES or tvb(0, 1):uint() ~= MAGIC then return false end
  local covered = tvb(2, 2):le_uint()
  if covered < HEADER_BYTES or covered > reported then return false end
  if bits.band(tvb(1, 1):uint(), 0x84) ~= 0 then return false end
  return captured == HEADER_BYTES or frame_types[tvb(HEADER_BYTES, 1):uint()] ~= nil
end

mltcp:register_heuristic("udp", function(tvb, pinfo, root)
  if not mltcp.prefs.heuristic or not looks_like_mltcp(tvb) then return false end
  dissect(tvb, pinfo, root) -- called directly: by its name, the protocol would count twice
  return true
end)

local udp_ports = DissectorTable.get("udp.port")
local added = ""
function mltcp.prefs_changed()
  if added == mltcp.prefs.ports then return end
  if added ~= "" then udp_ports:remove(added, mltcp) end
  added = mltcp.prefs.ports
  if added ~= "" then udp_ports:add(added, mltcp) end
end
udp_ports:add_for_decode_as(mltcp)
