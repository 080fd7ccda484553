-- DDP segments and the RDMAP messages in them (RFC 5040, 5041, 7306), for
-- xwarp.lua. This file returns a function that gets what the two share and
-- returns the dissector of a segment; loaded on its own, as Wireshark does with
-- every file of a plugin folder, it does nothing.

local TAGGED_LEN, UNTAGGED_LEN = 14, 18

-- What RDMAP knows of an opcode (RFC 5040, figures 4 and 5; RFC 7306; 12 is
-- ours): kind of header, queue, bytes of payload of messages that are always
-- one segment, bytes in front of the payload.
local SEND, READ_REQUEST, READ_RESPONSE, TERMINATE = 3, 1, 2, 7
local IMMEDIATE, IMMEDIATE_SE, ATOMIC_REQUEST, ATOMIC_RESPONSE, WRITE_RECORD = 8, 9, 10, 11, 12
local ops = {
  [0] = { name = "Write", tagged = true },
  [READ_REQUEST] = { name = "Read Request", queue = 1, single = 28 },
  [READ_RESPONSE] = { name = "Read Response", tagged = true },
  [SEND] = { name = "Send", queue = 0 },
  [4] = { name = "Send with Invalidate", queue = 0, invalidates = true },
  [5] = { name = "Send with SE", queue = 0 },
  [6] = { name = "Send with SE and Invalidate", queue = 0, invalidates = true },
  [TERMINATE] = { name = "Terminate", queue = 2 },
  [IMMEDIATE] = { name = "Immediate Data", queue = 0, single = 8 },
  [IMMEDIATE_SE] = { name = "Immediate Data with SE", queue = 0, single = 8 },
  [ATOMIC_REQUEST] = { name = "Atomic Request", queue = 1, single = 52 },
  [ATOMIC_RESPONSE] = { name = "Atomic Response", queue = 3, single = 12 },
  [WRITE_RECORD] = { name = "Write-Record", tagged = true, header = 12 },
}
local op_names = {}
for code, op in pairs(ops) do op_names[code] = op.name end

local queue_names = { [0] = "Send", [1] = "Requests", [2] = "Terminate", [3] = "Atomic Responses" }
local atomic_names = { [0] = "FetchAdd", [1] = "Swap", [2] = "CmpSwap" }

-- Why a stream ends: layer, type, code (RFC 6580's registry).
local layer_names = { [0] = "RDMAP", [1] = "DDP", [2] = "LLP" }
local type_names = {
  [0x00] = "Local Catastrophic Error", [0x01] = "Remote Protection Error", [0x02] = "Remote Operation Error",
  [0x10] = "Local Catastrophic Error", [0x11] = "Tagged Buffer Error", [0x12] = "Untagged Buffer Error",
  [0x20] = "LLP Error",
}
local cause_names = {
  [0x0000] = "Local catastrophic error",
  [0x0100] = "Invalid STag", [0x0101] = "Base or bounds violation", [0x0102] = "Access rights violation",
  [0x0103] = "STag not associated with RDMAP stream", [0x0104] = "TO wrap",
  [0x0109] = "STag cannot be invalidated", [0x01ff] = "Unspecified protection error",
  [0x0205] = "Invalid RDMAP version", [0x0206] = "Unexpected opcode",
  [0x0207] = "Catastrophic error, localized to RDMAP stream", [0x0208] = "Catastrophic error, global",
  [0x0209] = "STag cannot be invalidated", [0x02ff] = "Unspecified operation error",
  [0x1000] = "Local catastrophic error",
  [0x1100] = "Invalid STag", [0x1101] = "Base or bounds violation",
  [0x1102] = "STag not associated with DDP stream", [0x1103] = "TO wrap", [0x1104] = "Invalid DDP version",
  [0x1201] = "Invalid QN", [0x1202] = "Invalid MSN, no buffer available",
  [0x1203] = "Invalid MSN, out of range", [0x1204] = "Invalid MO",
  [0x1205] = "Message too long for the buffer", [0x1206] = "Invalid DDP version",
  [0x2001] = "Connection lost", [0x2002] = "CRC error", [0x2003] = "Marker and length mismatch",
  [0x2004] = "Invalid start-up frame", [0x2005] = "Local catastrophic error",
  [0x2006] = "Insufficient IRD resources", [0x2007] = "No matching RTR option",
}

-- shared has field and note, which declare a field and an expert info and keep
-- them in f and e, and other functions of xwarp.lua.
return function(shared)

local f, e, field, note, bit, add = shared.f, shared.e, shared.field, shared.note, shared.bit, shared.add

field("ddp.tagged", "bool", "Tagged", 8, nil, 0x80)
field("ddp.last", "bool", "Last segment", 8, nil, 0x40)
field("ddp.reserved", "uint8", "Reserved", base.HEX, nil, 0x3c)
field("ddp.version", "uint8", "DDP version", base.DEC, nil, 0x03)
field("ddp.stag", "uint32", "STag", base.HEX)
field("ddp.to", "uint64", "Tagged offset", base.HEX)
field("ddp.qn", "uint32", "Queue number", base.DEC, queue_names)
field("ddp.msn", "uint32", "Message sequence number")
field("ddp.mo", "uint32", "Message offset")
field("rdmap.version", "uint8", "RDMAP version", base.DEC, nil, 0xc0)
field("rdmap.opcode", "uint8", "Opcode", base.DEC, op_names, 0x0f)
field("rdmap.reserved", "uint32", "Reserved", base.HEX)
field("rdmap.inv_stag", "uint32", "STag to invalidate", base.HEX)
field("read.sink_stag", "uint32", "Sink STag", base.HEX)
field("read.sink_to", "uint64", "Sink tagged offset", base.HEX)
field("read.size", "uint32", "Bytes to read")
field("read.src_stag", "uint32", "Source STag", base.HEX)
field("read.src_to", "uint64", "Source tagged offset", base.HEX)
field("atomic.op", "uint32", "Operation", base.DEC, atomic_names, 0x0f)
field("atomic.id", "uint32", "Request identifier")
field("atomic.stag", "uint32", "Remote STag", base.HEX)
field("atomic.to", "uint64", "Remote tagged offset", base.HEX)
field("atomic.data", "uint64", "Add or swap data", base.HEX)
field("atomic.mask", "uint64", "Add or swap mask", base.HEX)
field("atomic.compare", "uint64", "Compare data", base.HEX)
field("atomic.compare_mask", "uint64", "Compare mask", base.HEX)
field("atomic.value", "uint64", "Original value", base.HEX)
field("imm", "uint64", "Immediate data", base.HEX)
field("term.cause", "uint16", "Cause", base.HEX, cause_names)
field("term.layer", "uint8", "Layer", base.DEC, layer_names, 0xf0)
field("term.type", "uint8", "Error type", base.DEC, nil, 0x0f)
field("term.code", "uint8", "Error code", base.HEX)
field("term.m", "bool", "DDP segment length valid", 8, nil, 0x80)
field("term.d", "bool", "DDP header included", 8, nil, 0x40)
field("term.r", "bool", "RDMAP header included", 8, nil, 0x20)
field("term.length", "uint16", "Length of the terminated segment")
field("term.header", "none", "Headers of the terminated segment")
field("record.id", "uint32", "Message ID")
field("record.length", "uint32", "Message length")
field("record.offset", "uint32", "Offset of this chunk")
field("payload", "bytes", "Payload")
field("payload.length", "uint32", "Payload length")

note("segment", "Malformed segment", expert.group.MALFORMED, expert.severity.ERROR)
note("unknown", "Unknown to this dissector", expert.group.UNDECODED, expert.severity.WARN)
note("terminate", "Stream is terminated", expert.group.RESPONSE_CODE, expert.severity.WARN)

local function hex64(range) return "0x" .. range:bytes():tohex(true) end

-- Each of these shows the payload of one opcode: o is where it starts, n how
-- long it is, d the segment with its header. They return how much they showed
-- and, perhaps, words for the info column.
local show = {}

local read_request = {
  { "read.sink_stag", 4 }, { "read.sink_to", 8 }, { "read.size", 4 }, { "read.src_stag", 4 }, { "read.src_to", 8 },
}
local atomic_request = {
  { "atomic.op", 4 }, { "atomic.id", 4 }, { "atomic.stag", 4 }, { "atomic.to", 8 }, { "atomic.data", 8 },
  { "atomic.mask", 8 }, { "atomic.compare", 8 }, { "atomic.compare_mask", 8 },
}

show[READ_REQUEST] = function(tvb, o, n, tree, d)
  add(tree, tvb, read_request, o)
  if d.pinfo then
    shared.learn_request(d.pinfo, string.format("read %x %x %s", d.src, tvb(o, 4):uint(), tvb(o + 4, 8):uint64():tohex()))
  end
  return 28, string.format("%d bytes of STag=0x%08x TO=%s", tvb(o + 12, 4):uint(), tvb(o + 16, 4):uint(), hex64(tvb(o + 20, 8)))
end

show[READ_RESPONSE] = function(tvb, o, n, tree, d)
  local key = "read %x %x %s"
  local request = shared.find_request(d.pinfo, key:format(d.dst, d.stag, d.to:tohex()), tree)
  if request then -- the segment that follows answers it too
    shared.learn_request(d.pinfo, key:format(d.dst, d.stag, (d.to + n):tohex()), request)
  end
  return 0
end

show[ATOMIC_REQUEST] = function(tvb, o, n, tree, d)
  add(tree, tvb, atomic_request, o)
  local id = tvb(o + 4, 4):uint()
  if d.pinfo then shared.learn_request(d.pinfo, string.format("atomic %x %x", d.src, id)) end
  return 52, string.format("%s ID=%d STag=0x%08x TO=%s", atomic_names[tvb(o + 3, 1):uint() % 16] or "unknown", id,
    tvb(o + 8, 4):uint(), hex64(tvb(o + 12, 8)))
end

show[ATOMIC_RESPONSE] = function(tvb, o, n, tree, d)
  add(tree, tvb, { { "atomic.id", 4 }, { "atomic.value", 8 } }, o)
  local id = tvb(o, 4):uint()
  shared.find_request(d.pinfo, string.format("atomic %x %x", d.dst, id), tree)
  return 12, string.format("ID=%d value %s", id, hex64(tvb(o + 4, 8)))
end

show[IMMEDIATE] = function(tvb, o, n, tree)
  tree:add(f.imm, tvb(o, 8))
  return 8, hex64(tvb(o, 8))
end
show[IMMEDIATE_SE] = show[IMMEDIATE]

show[WRITE_RECORD] = function(tvb, o, n, tree, d)
  add(tree, tvb, { { "record.id", 4 }, { "record.length", 4 }, { "record.offset", 4 } }, o)
  local length, offset = tvb(o + 4, 4):uint(), tvb(o + 8, 4):uint()
  if offset + n - 12 > length or d.last ~= (offset + n - 12 == length) then
    tree:add_proto_expert_info(e.segment, "Chunk does not fit its message, or L is not on the one that ends it")
  end
  return 12, string.format("ID=%d chunk at %d of %d", tvb(o, 4):uint(), offset, length)
end

local show_segment

show[TERMINATE] = function(tvb, o, n, tree)
  if n < 4 then
    tree:add_proto_expert_info(e.segment, "Terminate without its control word")
    return 0
  end
  local cause, bits = tvb(o, 2):uint(), tvb(o + 2, 1):uint()
  local group = math.floor(cause / 256)
  tree:add(f["term.cause"], tvb(o, 2))
  tree:add(f["term.layer"], tvb(o, 1))
  tree:add(f["term.type"], tvb(o, 1)):append_text(" (" .. (type_names[group] or "unknown") .. ")")
  tree:add(f["term.code"], tvb(o + 1, 1)):append_text(" (" .. (cause_names[cause] or "unknown") .. ")")
  for _, key in ipairs({ "m", "d", "r" }) do tree:add(f["term." .. key], tvb(o + 2, 1)) end
  local words = string.format("%s: %s, %s", layer_names[math.floor(group / 16)] or "unknown layer",
    type_names[group] or "unknown type", cause_names[cause] or "unknown code")
  tree:add_proto_expert_info(e.terminate, words)
  if not bit(bits, 0x40) or n <= 6 then return 4, words end
  tree:add(f["term.length"], tvb(o + 4, 2))
  local copy = tree:add(f["term.header"], tvb(o + 6, n - 6))
  copy:append_text(": " .. show_segment(tvb, o + 6, n - 6, copy, { copy = true, request = bit(bits, 0x20) }))
  return n, words
end

-- show_header shows a DDP header, RDMAP's control byte included, and fills in d.
-- It returns its length, or nothing when the segment is too short for it.
local function show_header(tvb, o, n, tree, d)
  if n < 2 then return end
  local control = tvb(o, 1):uint()
  d.tagged, d.last = bit(control, 0x80), bit(control, 0x40)
  d.op = tvb(o + 1, 1):uint() % 16
  for _, key in ipairs({ "tagged", "last", "reserved", "version" }) do tree:add(f["ddp." .. key], tvb(o, 1)) end
  tree:add(f["rdmap.version"], tvb(o + 1, 1))
  tree:add(f["rdmap.opcode"], tvb(o + 1, 1))
  d.versions = control % 4 == 1 and math.floor(tvb(o + 1, 1):uint() / 64) == 1
  if n < (d.tagged and TAGGED_LEN or UNTAGGED_LEN) then return end
  if d.tagged then
    add(tree, tvb, { { "ddp.stag", 4 }, { "ddp.to", 8 } }, o + 2)
    d.stag, d.to = tvb(o + 2, 4):uint(), tvb(o + 6, 8):uint64()
    return TAGGED_LEN, string.format("STag=0x%08x TO=%s", d.stag, hex64(tvb(o + 6, 8)))
  end
  local inv = ops[d.op] and ops[d.op].invalidates
  add(tree, tvb, { { inv and "rdmap.inv_stag" or "rdmap.reserved", 4 }, { "ddp.qn", 4 }, { "ddp.msn", 4 }, { "ddp.mo", 4 } }, o + 2)
  d.queue, d.msn, d.mo = tvb(o + 6, 4):uint(), tvb(o + 10, 4):uint(), tvb(o + 14, 4):uint()
  local words = string.format("MSN=%d MO=%d", d.msn, d.mo)
  if inv then words = words .. string.format(" STag=0x%08x", tvb(o + 2, 4):uint()) end
  return UNTAGGED_LEN, words
end

-- complaint says what is wrong with a segment of n bytes behind its header.
local function complaint(d, op, n)
  if d.tagged ~= (op.tagged or false) then return "this operation has another kind of header" end
  if not d.tagged and d.queue ~= op.queue then return "this operation has another queue" end
  if op.single and (n ~= op.single or d.mo ~= 0 or not d.last) then
    return "want one segment of " .. op.single .. " bytes"
  end
  if op.header and n < op.header then return "too short for its header" end
  local last = n - (op.header or 0) - 1 -- byte of payload
  if d.tagged and last > 0 and d.to + last < d.to then return "reaches past the end of the address space" end
  if not d.tagged and d.mo + n > 0x100000000 then return "reaches past 4 GiB" end
end

-- show_segment shows a DDP segment, or the copy of its headers in a Terminate,
-- and returns words for the info column.
function show_segment(tvb, o, n, tree, d)
  local len, words = show_header(tvb, o, n, tree, d)
  if not len then
    tree:add_proto_expert_info(e.segment, "Segment of " .. n .. " bytes is too short for its DDP header")
    return "malformed"
  end
  local op = ops[d.op]
  words = (op and op.name or "Opcode " .. d.op) .. " " .. words .. (d.last and " L" or "")
  o, n = o + len, n - len
  if not op or not d.versions then
    tree:add_proto_expert_info(e.unknown, op and "DDP or RDMAP version" or "RDMAP opcode " .. d.op)
    return words
  end
  if d.copy and not d.request then return words end
  local wrong = complaint(d, op, n)
  if wrong then
    tree:add_proto_expert_info(e.segment, op.name .. ": " .. wrong)
    return words .. " malformed"
  end
  local shown, more = 0, nil
  if show[d.op] then shown, more = show[d.op](tvb, o, n, tree, d) end
  if more then words = words .. " " .. more end
  if not op.single and d.op ~= TERMINATE then
    tree:add(f["payload.length"], n - shown):set_generated()
    words = words .. " " .. (n - shown) .. " bytes"
  end
  if n > shown then tree:add(f.payload, tvb(o + shown, n - shown)) end
  return words
end

return show_segment
end
