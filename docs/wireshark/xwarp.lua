-- Wireshark dissector for the datagrams of xwarp, wire format version 2
-- (../PROTOCOL.md). How to install and use it: README.md beside this file.
--
-- For Lua 5.2 to 5.4; tested with Wireshark 4.0.

local VERSION = 2
local HEADER_LEN = 36
local SECURE_LEN, TAG_LEN, ENCRYPTED = 24, 16, 0x30
local HELLO_LEN = HEADER_LEN + 4 -- without its padding
local MAX_SACK_WORDS = 8
local MULTICAST_QPN = 0xffffff
local WINDOW_MAX = 64 * MAX_SACK_WORDS

local folder = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local crc32c = dofile(folder .. "xwarp_crc32c.lua")

local DATA, ACK, HELLO, HELLO_ACK, UD, RESET = 1, 2, 3, 4, 5, 6
local types = {
  [DATA] = "Data", [ACK] = "Ack", [HELLO] = "Hello", [HELLO_ACK] = "HelloAck", [UD] = "UD", [RESET] = "Reset",
}

-- Fields -------------------------------------------------------------------

local xwarp = Proto("xwarp", "xwarp Datagram")

local f, e = {}, {}
local function field(key, kind, ...) f[key] = ProtoField[kind]("xwarp." .. key, ...) end
local function note(key, ...) e[key] = ProtoExpert.new("xwarp.expert." .. key, ...) end

field("crc", "uint32", "CRC32C", base.HEX)
field("crc.status", "uint8", "CRC32C status", base.DEC,
  { [0] = "Bad", [1] = "Good", [2] = "Unverified", [3] = "Not present" })
field("version", "uint8", "Version", base.DEC, nil, 0xf0)
field("type", "uint8", "Type", base.DEC, types, 0x0f)
field("flags", "uint8", "Flags", base.HEX)
field("flags.crc", "bool", "CRC filled in", 8, nil, 0x80)
field("flags.ack_soon", "bool", "Sender waits for the acknowledgement", 8, nil, 0x40)
field("flags.bulk", "bool", "Large data takes the bulk path", 8, nil, 0x20)
field("flags.paths", "bool", "Tells where the sender can be reached", 8, nil, 0x10)
field("flags.reserved", "uint8", "Reserved", base.HEX, nil, 0x0f)
field("count", "uint8", "ULPDUs")
field("sack_words", "uint8", "SACK words")
field("key", "uint64", "Job key", base.HEX)
field("src_epoch", "uint32", "Source epoch", base.HEX)
field("dst_epoch", "uint32", "Destination epoch", base.HEX)
field("lsn", "uint32", "LSN of the first ULPDU")
field("lsn.relative", "uint32", "LSN of the first ULPDU, counted from 0")
field("ack", "uint32", "Acknowledgement")
field("ack.relative", "uint32", "Acknowledgement, counted from 0")
field("src_qp", "uint32", "Source QP")
field("dst_qp", "uint32", "Destination QP")
field("group", "ipv4", "Multicast group (of IPv6: its last 4 bytes)")
field("window", "uint16", "Window", base.DEC, nil, 0x03ff)
field("credit.code", "uint16", "Credit code", base.DEC, nil, 0xfc00)
field("credit", "uint32", "Credit (Sends outstanding)")
field("held", "uint16", "Held in units of 256 ns")
field("held_ns", "uint32", "Held in ns")
field("sack", "uint64", "SACK word", base.HEX)
field("sack.range", "string", "Arrived")
field("hello.source", "uint8", "Number of the source port")
field("hello.queue", "uint8", "Queue that the Hello came in on, plus 1")
field("hello.home", "uint8", "Queue that it should, plus 1")
field("hello.largest", "uint16", "Largest UDP payload that the sender can receive")
field("hello.length", "uint16", "Length of this Hello")
field("hello.answers", "uint16", "Length of the Hello that this answers")
field("hello.paths", "uint8", "Networks that the sender is on")
field("hello.address", "ipv6", "Address")
field("hello.port", "uint16", "Port")
field("hello.padding", "bytes", "Padding")
field("ulpdu", "none", "ULPDU")
field("ulpdu.length", "uint16", "Length")
field("ulpdu.lsn", "uint32", "LSN")
field("secure.group", "bool", "Sent to a multicast group", 8, nil, 0x01)
field("secure.counter", "uint64", "Counter")
field("secure.instance", "uint64", "Instance of the sender, but for its first four bytes", base.HEX)
field("secure.ciphertext", "bytes", "Encrypted datagram")
field("secure.tag", "bytes", "Tag")
field("resent", "framenum", "Sent before in frame", base.NONE, frametype.NONE)
field("seen", "framenum", "Seen before, at another interface, in frame", base.NONE, frametype.NONE)
field("acks", "framenum", "Acknowledges frame", base.NONE, frametype.ACK)
field("acked_in", "framenum", "Acknowledged in frame", base.NONE, frametype.ACK)
field("ack_time", "relative_time", "Time from that frame to this one")
field("request", "framenum", "Request in frame", base.NONE, frametype.REQUEST)

note("malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
note("crc", "CRC32C is wrong", expert.group.CHECKSUM, expert.severity.ERROR)
note("reset", "Association is over", expert.group.RESPONSE_CODE, expert.severity.NOTE)
note("epoch", "Destination epoch 0: the receiver drops this", expert.group.PROTOCOL, expert.severity.WARN)
note("cut", "Cut off by the capture", expert.group.UNDECODED, expert.severity.NOTE)
note("resent", "Sent again", expert.group.SEQUENCE, expert.severity.NOTE)
note("seen", "Seen again at another interface", expert.group.SEQUENCE, expert.severity.CHAT)
note("gap", "Something is missing at the receiver", expert.group.SEQUENCE, expert.severity.NOTE)

xwarp.prefs.ports = Pref.range("UDP ports", "18700-18955", "Ports of endpoints. Datagrams on others are found by what they look like.", 65535)
xwarp.prefs.check_crc = Pref.bool("Check the CRC32C", true, "Takes a third of a millisecond for a large datagram.")

local function bit(value, mask) return math.floor(value / mask) % 2 == 1 end
-- add adds fields with their lengths in bytes, one behind the other from o on.
local function add(tree, tvb, list, o)
  for _, item in ipairs(list) do
    tree:add(f[item[1]], tvb(o, item[2]))
    o = o + item[2]
  end
end

local function minus(a, b) return (a - b) % 0x100000000 end

-- What one frame tells about others ------------------------------------------

-- links is what was learned so far. Wireshark looks at frames in order once and
-- then again as it likes; only the first look adds to it.
local links

function xwarp.init()
  links = {
    sent = {},     -- by source epoch, then LSN: number of the first frame with that ULPDU
    acked = {},    -- by the epoch of whom it is for: last acknowledgement
    requests = {}, -- number of the frame with a request, by what its response has
    seen = {},     -- by what does not change on the way: last frame with that datagram, and its places
    frame = {},    -- by number: { time, acks, acked_in, request, seen, resent by LSN }
  }
end

local learning -- not from what is corrupt, or was seen before

-- frame_links returns what is known of this frame, and whether to learn from it.
local function frame_links(pinfo)
  local l = links.frame[pinfo.number]
  if l then return l, learning and not pinfo.visited end
  l = { time = pinfo.rel_ts, resent = {} }
  links.frame[pinfo.number] = l
  return l, learning
end

local interface, ifindex = Field.new("frame.interface_id"), Field.new("sll.ifindex")
local direction, ip_id = Field.new("sll.pkttype"), Field.new("ip.id")

-- Wireshark has no fields at its first look at a frame unless somebody wants
-- them: this listener does.
Listener.new("frame", "udp and (frame.interface_id >= 0 or sll.ifindex >= 0 or sll.pkttype >= 0 or ip.id >= 0)")

local function value(extract)
  local info = extract()
  return info and tostring(info.value) or ""
end

-- seen_before returns the number of the frame in which the capture has seen this
-- datagram at another interface, as one on "any" does at each port of a bridge.
-- What is sent again is seen where it was seen before, or differs: our frames
-- have an IP identification of their own each.
local function seen_before(tvb, pinfo)
  local l = frame_links(pinfo)
  if l.where or not ip_id() then return l.seen end -- tshark -2 has fields at its second look only
  l.where = table.concat({ value(interface), value(ifindex), value(direction) }, "/")
  local what = table.concat({ tostring(pinfo.src), pinfo.src_port, tostring(pinfo.dst), pinfo.dst_port,
    value(ip_id), tvb:raw(0, HEADER_LEN) }, " ")
  local last = links.seen[what]
  if last and not last.at[l.where] then
    l.seen = last.frame
  else
    last = { frame = pinfo.number, at = {} }
    links.seen[what] = last
  end
  last.at[l.where] = true
  return l.seen
end

-- learn_sent notes that a ULPDU was sent in this frame.
local function learn_sent(pinfo, epoch, lsn)
  local l, learn = frame_links(pinfo)
  if not learn then return not l.seen and l.resent[lsn] end
  local sent = links.sent[epoch] or {}
  links.sent[epoch] = sent
  if sent[lsn] and sent[lsn] ~= pinfo.number then l.resent[lsn] = sent[lsn] end
  sent[lsn] = sent[lsn] or pinfo.number
  return l.resent[lsn]
end

-- learn_ack notes that this frame acknowledges all that dst sent before ack.
local function learn_ack(pinfo, dst, ack)
  local l, learn = frame_links(pinfo)
  local sent = links.sent[dst]
  if not learn or not sent then return l end
  local from = links.acked[dst] or dst
  local advance = minus(ack, from)
  if advance > 0 and advance < 0x80000000 then
    links.acked[dst] = ack
    l.acks = sent[minus(ack, 1)]
    for i = 1, math.min(advance, 1024) do
      local number = sent[minus(ack, i)]
      if number then links.frame[number].acked_in = links.frame[number].acked_in or pinfo.number end
    end
  end
  return l
end

-- learn_request and find_request join a response to its request by key. The
-- request is in this frame or, given its number, in another.
local function learn_request(pinfo, key, number)
  local _, learn = frame_links(pinfo)
  if learn then links.requests[key] = number or pinfo.number end
end

local function find_request(pinfo, key, tree)
  local l, learn = frame_links(pinfo)
  if learn then l.request = links.requests[key] end
  if l.request then tree:add(f.request, l.request):set_generated() end
  return l.request
end

local show_segment = dofile(folder .. "xwarp_ddp.lua")({
  f = f, e = e, field = field, note = note, bit = bit, add = add, learn_request = learn_request,
  find_request = find_request,
})
xwarp.fields = f
xwarp.experts = e

-- The LLP -------------------------------------------------------------------

-- crc_status returns 0 bad, 1 good, 2 not looked at, 3 not there, as the status
-- fields of Wireshark's own dissectors have it.
local function crc_status(tvb)
  if not bit(tvb(5, 1):uint(), 0x80) then return 3 end
  if not xwarp.prefs.check_crc or tvb:captured_len() < tvb:reported_len() then return 2 end
  return crc32c(tvb:raw(4)) == tvb(0, 4):uint() and 1 or 0
end

local function show_crc(tvb, tree)
  local status = crc_status(tvb)
  local item = tree:add(f.crc, tvb(0, 4))
  tree:add(f["crc.status"], status):set_generated()
  if status == 0 then
    item:append_text(string.format(", should be 0x%08x", crc32c(tvb:raw(4))))
    tree:add_proto_expert_info(e.crc)
  end
  return status
end

-- credit_value decodes a credit code; nil means unlimited.
local function credit_value(code)
  if code < 16 then return code end
  if code < 63 then return (4 + code % 4) * 2 ^ (math.floor(code / 4) - 2) end
end

local function show_flow(tvb, tree, h)
  local low, high = tvb(32, 2), tvb(34, 2)
  tree:add(f.window, low)
  local code = math.floor(tvb(32, 1):uint() / 4)
  local item = tree:add(f["credit.code"], low)
  local credit = credit_value(code)
  if credit then
    tree:add(f.credit, math.floor(credit)):set_generated()
  else
    item:append_text(" (unlimited)")
  end
  local held = high:uint()
  tree:add(f.held, high):append_text(held == 0xffff and " (or more)" or "")
  tree:add(f.held_ns, held * 256):set_generated()
end

-- header_complaint says what is wrong with the header, whatever follows it.
local function header_complaint(tvb, h)
  if not types[h.type] then return "Unknown type" end
  if h.src == 0 then return "Source epoch 0" end
  if tvb(32, 2):bitfield(6, 10) > WINDOW_MAX then return "Window above " .. WINDOW_MAX end
  if h.count > 0 and h.type ~= DATA and h.type ~= UD then return "ULPDUs in a datagram that carries none" end
  if h.words > (h.type == ACK and MAX_SACK_WORDS or 0) then return "Too many SACK words" end
end

-- show_llp_header shows the 36 bytes that all datagrams have, and fills in h.
local function show_llp_header(tvb, tree, h)
  h.flags, h.count, h.words = tvb(5, 1):uint(), tvb(6, 1):uint(), tvb(7, 1):uint()
  h.src, h.dst = tvb(16, 4):uint(), tvb(20, 4):uint()
  h.lsn, h.ack = tvb(24, 4):uint(), tvb(28, 4):uint()
  tree:add(f.version, tvb(4, 1))
  tree:add(f.type, tvb(4, 1))
  local flags = tree:add(f.flags, tvb(5, 1))
  for _, key in ipairs({ "crc", "ack_soon", "bulk", "paths", "reserved" }) do flags:add(f["flags." .. key], tvb(5, 1)) end
  add(tree, tvb, { { "count", 1 }, { "sack_words", 1 }, { "key", 8 }, { "src_epoch", 4 } }, 6)
  tree:add(h.type == UD and h.ack == MULTICAST_QPN and f.group or f.dst_epoch, tvb(20, 4))
  if h.type == UD then
    add(tree, tvb, { { "src_qp", 4 }, { "dst_qp", 4 } }, 24)
  elseif h.type == DATA or h.type == ACK then
    tree:add(f.lsn, tvb(24, 4))
    h.relative, h.ack_relative = minus(h.lsn, h.src), minus(h.ack, h.dst)
    tree:add(f["lsn.relative"], h.relative):set_generated()
    tree:add(f.ack, tvb(28, 4))
    tree:add(f["ack.relative"], h.ack_relative):set_generated()
    show_flow(tvb, tree, h)
  end
  local wrong = header_complaint(tvb, h)
  if wrong then tree:add_proto_expert_info(e.malformed, wrong) end
end

-- show_ulpdus shows the body of Data and UD.
local function show_ulpdus(tvb, pinfo, tree, h)
  local o, words = HEADER_LEN, {}
  for i = 0, h.count - 1 do
    local left = tvb:reported_len() - o
    local n = left >= 2 and tvb:captured_len() >= o + 2 and tvb(o, 2):uint()
    if left < 2 or n and n > left - 2 then
      tree:add_proto_expert_info(e.malformed, string.format("ULPDU %d of %d does not fit the datagram", i + 1, h.count))
      return words
    end
    if not n or tvb:captured_len() < o + 2 + n then
      tree:add_proto_expert_info(e.cut)
      return words
    end
    local item = tree:add(f.ulpdu, tvb(o, 2 + n))
    item:add(f["ulpdu.length"], tvb(o, 2))
    local before
    if h.type == DATA then
      local lsn = (h.lsn + i) % 0x100000000
      item:add(f["ulpdu.lsn"], lsn):set_generated()
      before = learn_sent(pinfo, h.src, lsn)
      if before then
        item:add(f.resent, before):set_generated()
        item:add_proto_expert_info(e.resent)
      end
    end
    local text = show_segment(tvb, o + 2, n, item, { pinfo = pinfo, src = h.src, dst = h.dst })
    item:append_text(": " .. text)
    words[#words + 1] = text .. (before and " (sent again)" or "")
    o = o + 2 + n
  end
  if o < tvb:reported_len() then
    tree:add_proto_expert_info(e.malformed, tvb:reported_len() - o .. " bytes behind the last ULPDU")
  end
  return words
end

-- show_sack shows the SACK words and returns the ranges that have arrived.
local function show_sack(tvb, tree, h)
  local ranges, first = {}, nil
  local function close(at)
    if first then ranges[#ranges + 1] = first == at - 1 and "#" .. first or "#" .. first .. "-" .. at - 1 end
    first = nil
  end
  for w = 0, h.words - 1 do
    local o = HEADER_LEN + 8 * w
    tree:add(f.sack, tvb(o, 8))
    for i = 0, 63 do
      local at = h.ack_relative + 1 + 64 * w + i
      if bit(tvb(o + 7 - math.floor(i / 8), 1):uint(), 2 ^ (i % 8)) then
        first = first or at
      else
        close(at)
      end
    end
  end
  close(h.ack_relative + 1 + 64 * h.words)
  for _, range in ipairs(ranges) do tree:add(f["sack.range"], range):set_generated() end
  if #ranges > 0 then tree:add_proto_expert_info(e.gap) end
  return ranges
end

local function show_links(pinfo, tree, h)
  local l = learn_ack(pinfo, h.dst, h.ack)
  if l.acks then
    tree:add(f.acks, l.acks):set_generated()
    local ns = math.floor((pinfo.rel_ts - links.frame[l.acks].time) * 1e9 + 0.5)
    tree:add(f.ack_time, NSTime(math.floor(ns / 1e9), ns % 1e9)):set_generated()
  end
  if l.acked_in then tree:add(f.acked_in, l.acked_in):set_generated() end
end

-- show_body shows what follows the header and returns words for the info column.
local show_body = {}

show_body[DATA] = function(tvb, pinfo, tree, h)
  local words = show_ulpdus(tvb, pinfo, tree, h)
  local list = table.concat(words, "; ", 1, math.min(#words, 3))
  if #words > 3 then list = list .. string.format("; ... (%d ULPDUs)", #words) end
  if h.type == UD then return string.format("QP %d > %d %s", h.lsn, h.ack, list) end
  return string.format("#%d ack #%d%s %s", h.relative, h.ack_relative, bit(h.flags, 0x40) and " soon" or "", list)
end

show_body[UD] = show_body[DATA]

show_body[ACK] = function(tvb, pinfo, tree, h)
  local size = HEADER_LEN + 8 * h.words
  if tvb:reported_len() ~= size then
    tree:add_proto_expert_info(e.malformed, "Length is not that of the SACK words")
    return "malformed"
  end
  if tvb:captured_len() < size then
    tree:add_proto_expert_info(e.cut)
    return "#" .. h.ack_relative
  end
  local ranges = show_sack(tvb, tree, h)
  return string.format("#%d%s", h.ack_relative, #ranges > 0 and " and " .. table.concat(ranges, " ") or "")
end

-- paths_end returns where the list of addresses of a Hello ends, if there is one.
local function paths_end(tvb)
  if tvb(5, 1):bitfield(3, 1) == 0 or tvb:captured_len() <= HELLO_LEN then return HELLO_LEN end
  return HELLO_LEN + 1 + 18 * tvb(HELLO_LEN, 1):uint()
end

-- show_paths shows that list, and returns where it ends.
local function show_paths(tvb, tree)
  local last = paths_end(tvb)
  if last == HELLO_LEN then return last end
  if last > tvb:captured_len() then
    tree:add_proto_expert_info(e.malformed, "Too short for its list of addresses")
    return tvb:captured_len()
  end
  local list = tree:add(f["hello.paths"], tvb(HELLO_LEN, 1))
  for o = HELLO_LEN + 1, last - 1, 18 do add(list, tvb, { { "hello.address", 16 }, { "hello.port", 2 } }, o) end
  return last
end

show_body[HELLO] = function(tvb, pinfo, tree, h)
  add(tree, tvb, { { "hello.source", 1 } }, 24)
  add(tree, tvb, { { "hello.largest", 2 }, { "hello.length", 2 } }, HEADER_LEN)
  local last = show_paths(tvb, tree)
  if tvb:captured_len() > last then tree:add(f["hello.padding"], tvb(last)) end
  local largest, length = tvb(HEADER_LEN, 2):uint(), tvb(HEADER_LEN + 2, 2):uint()
  if length ~= tvb:reported_len() then
    tree:add_proto_expert_info(e.malformed, "Length is not that of this datagram")
  end
  learn_request(pinfo, string.format("hello %x %d", h.src, length))
  return string.format("%s, %d bytes, takes %d", h.dst == 0 and "of a new association" or "probe", length, largest)
end

show_body[HELLO_ACK] = function(tvb, pinfo, tree, h)
  add(tree, tvb, { { "hello.source", 1 }, { "hello.queue", 1 }, { "hello.home", 1 } }, 24)
  add(tree, tvb, { { "hello.largest", 2 }, { "hello.answers", 2 } }, HEADER_LEN)
  local last = show_paths(tvb, tree)
  if tvb:reported_len() ~= last then
    tree:add_proto_expert_info(e.malformed, tvb:reported_len() - last .. " bytes behind the body")
  end
  local answers = tvb(HEADER_LEN + 2, 2):uint()
  find_request(pinfo, string.format("hello %x %d", h.dst, answers), tree)
  return string.format("to %d bytes, takes %d", answers, tvb(HEADER_LEN, 2):uint())
end

show_body[RESET] = function(tvb, pinfo, tree, h)
  tree:add_proto_expert_info(e.reset)
  return string.format("of association 0x%08x", h.dst)
end

-- show_encrypted shows what can be seen of a datagram that is encrypted (docs/protocol/secure.md).
local function show_encrypted(tvb, pinfo, root)
  local n = tvb:captured_len()
  local tree = root:add(xwarp, tvb())
  tree:add(f.version, tvb(4, 1))
  tree:add(f["secure.group"], tvb(5, 1))
  tree:add(f["secure.counter"], tvb(8, 8))
  tree:add(f["secure.instance"], tvb(16, 8))
  tree:add(f["secure.ciphertext"], tvb(SECURE_LEN, n - SECURE_LEN - TAG_LEN))
  tree:add(f["secure.tag"], tvb(n - TAG_LEN, TAG_LEN))
  local words = string.format("Encrypted, %d bytes, number %s", n - SECURE_LEN - TAG_LEN, tvb(8, 8):uint64())
  tree:append_text(", " .. words)
  pinfo.cols.protocol = "xwarp"
  pinfo.cols.info = string.format("%d > %d %s", pinfo.src_port, pinfo.dst_port, words)
  return n
end

function xwarp.dissector(tvb, pinfo, root)
  if tvb:captured_len() >= SECURE_LEN + TAG_LEN and tvb(4, 1):uint() == ENCRYPTED then return show_encrypted(tvb, pinfo, root) end
  if tvb:captured_len() < HEADER_LEN or tvb(4, 1):bitfield(0, 4) ~= VERSION then return 0 end
  local h = { type = tvb(4, 1):bitfield(4, 4) }
  local tree = root:add(xwarp, tvb())
  pinfo.cols.protocol = "xwarp"
  local status = show_crc(tvb, tree)
  learning = status ~= 0
  local seen = learning and seen_before(tvb, pinfo)
  if seen then
    learning = false
    tree:add(f.seen, seen):set_generated()
    tree:add_proto_expert_info(e.seen)
  end
  show_llp_header(tvb, tree, h)
  if h.type == DATA or h.type == ACK then show_links(pinfo, tree, h) end
  if h.dst == 0 and h.type ~= HELLO and h.type ~= UD then tree:add_proto_expert_info(e.epoch) end
  local words
  if not show_body[h.type] then
    words = "malformed"
  elseif (h.type == HELLO or h.type == HELLO_ACK) and tvb:captured_len() < HELLO_LEN then
    tree:add_proto_expert_info(e.malformed, "Too short for its body")
    words = "malformed"
  else
    words = show_body[h.type](tvb, pinfo, tree, h)
  end
  words = string.format("%s %s", types[h.type] or "Type " .. h.type, words)
  tree:append_text(", " .. words)
  if status == 0 then words = words .. " [bad CRC]" end
  if seen then words = string.format("%s [frame %d at another interface]", words, seen) end
  pinfo.cols.info = string.format("%d > %d %s", pinfo.src_port, pinfo.dst_port, words)
  return tvb:captured_len()
end

-- Registration --------------------------------------------------------------

-- exact reports whether ULPDUs fill the datagram.
local function exact(tvb)
  local o, n = HEADER_LEN, tvb:captured_len()
  for _ = 1, tvb(6, 1):uint() do
    if o + 2 > n then return false end
    o = o + 2 + tvb(o, 2):uint()
  end
  return o == n
end

local shape = {
  [DATA] = exact,
  [UD] = exact,
  [ACK] = function(tvb) return tvb:captured_len() == HEADER_LEN + 8 * tvb(7, 1):uint() and tvb(6, 1):uint() == 0 end,
  [HELLO] = function(tvb) return tvb:captured_len() >= HELLO_LEN and tvb(HEADER_LEN + 2, 2):uint() == tvb:captured_len() end,
  [HELLO_ACK] = function(tvb) return tvb:captured_len() == paths_end(tvb) end,
  [RESET] = function(tvb) return tvb:captured_len() == HEADER_LEN end,
}

-- Kernel sockets of tests have any port. What looks exactly like a datagram of
-- ours is taken, and from then on all of its conversation is.
xwarp:register_heuristic("udp", function(tvb, pinfo, root)
  if tvb:captured_len() < HEADER_LEN or tvb:captured_len() < tvb:reported_len() then return false end
  local fits = shape[tvb(4, 1):bitfield(4, 4)]
  if tvb(4, 1):bitfield(0, 4) ~= VERSION or not fits or tvb(5, 1):bitfield(2, 1) + tvb(5, 1):bitfield(4, 4) ~= 0 or tvb(16, 4):uint() == 0 or
    not fits(tvb) or crc_status(tvb) == 0 then
    return false
  end
  pinfo.conversation = xwarp
  xwarp.dissector(tvb, pinfo, root)
  return true
end)

local by_port, registered = DissectorTable.get("udp.port"), nil

local function register()
  if registered == xwarp.prefs.ports then return end
  if registered then by_port:remove(registered, xwarp) end
  registered = xwarp.prefs.ports
  by_port:add(registered, xwarp)
end

xwarp.prefs_changed = register
register()
