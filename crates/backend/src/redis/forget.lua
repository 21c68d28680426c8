-- Removes the claim of the account KEYS[1] if it is the epoch ARGV[1]'s.
local value = redis.call('GET', KEYS[1])
if value and string.match(value, '^%d+') == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
