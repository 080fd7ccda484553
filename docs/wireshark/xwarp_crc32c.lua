-- CRC32C (Castagnoli) in Lua, for xwarp.lua. This file returns the function;
-- loaded on its own, as Wireshark does with every file of a plugin folder, it
-- does nothing.

-- Lua 5.3 has operators for bits, which 5.2 cannot even read.
local xor, xor8
if bit32 then
  xor, xor8 = bit32.bxor, bit32.bxor
else
  xor, xor8 = load([[
    return function(a, b) return a ~ b end,
      function(a, b, c, d, e, f, g, h) return a ~ b ~ c ~ d ~ e ~ f ~ g ~ h end]])()
end

-- crc_tables[k + 1][byte] is the CRC of that byte and k zeros behind it.
local crc_tables = { {} }
for byte = 0, 255 do
  local crc = byte
  for _ = 1, 8 do
    local low = crc % 2
    crc = (crc - low) / 2
    if low == 1 then crc = xor(crc, 0x82f63b78) end
  end
  crc_tables[1][byte] = crc
end
for k = 2, 8 do
  crc_tables[k] = {}
  for byte = 0, 255 do
    local before = crc_tables[k - 1][byte]
    local low = before % 256
    crc_tables[k][byte] = xor((before - low) / 256, crc_tables[1][low])
  end
end

-- The CRC of a string. It goes by eight bytes, so that a datagram of 9000 bytes
-- takes a third of a millisecond.
return function(s)
  local t1, t2, t3, t4, t5, t6, t7, t8 = (table.unpack or unpack)(crc_tables)
  local crc, byte, n = 0xffffffff, string.byte, #s
  local whole = n - n % 8
  for i = 1, whole, 8 do
    local a, b, c, d, e, f, g, h = byte(s, i, i + 7)
    crc = xor(crc, a + b * 0x100 + c * 0x10000 + d * 0x1000000)
    a = crc % 256
    crc = (crc - a) / 256
    b = crc % 256
    crc = (crc - b) / 256
    c = crc % 256
    crc = xor8(t8[a], t7[b], t6[c], t5[(crc - c) / 256], t4[e], t3[f], t2[g], t1[h])
  end
  for i = whole + 1, n do
    local low = crc % 256
    crc = xor((crc - low) / 256, t1[xor(low, byte(s, i))])
  end
  return xor(crc, 0xffffffff)
end
