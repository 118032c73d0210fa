// Printed by the Go program in test/support/go-tools/template-judge; a test compares the two.

/** Version of Unicode. */
export const UNICODE = '15.0.0';

/** Distances between the first and last codes of the ranges of letters. */
export const LETTERS =
  '4q 0 b 0 5 0 6 m 2 u 2 cp 5 b f 4 8 0 2 0 3m 4 2 1 3 3 2 0 7 0 2 2 2 0 2 j 2 2a 2 3u 9 4l 2 11 3 0 7 ' +
  '14 20 q 5 3 1a 16 10 1 2 2q 2 0 g 1 8 1 b 2 3 0 h 0 2 t u 2g c 0 p w a 1 5 0 6 l 5 0 a 0 4 0 o o 8 a ' +
  '6 n 2 5 i 15 1n 1h 4 0 j 0 8 9 g f 5 7 3 1 3 l 2 6 2 0 4 3 4 0 h 0 e 1 2 2 f 1 b 0 9 5 5 1 3 l 2 6 2 ' +
  '1 2 1 2 1 w 3 2 0 k 2 h 8 2 2 2 l 2 6 2 1 2 4 4 0 j 0 g 1 o 0 c 7 3 1 3 l 2 6 2 1 2 4 4 0 v 1 2 2 g ' +
  '0 i 0 2 5 4 2 2 3 4 1 2 0 2 1 4 1 4 2 4 b n 0 1h 7 2 2 2 m 2 f 4 0 r 2 3 0 3 1 v 0 5 7 2 2 2 m 2 9 2 ' +
  '4 4 0 w 1 2 1 g 1 i 8 2 2 2 14 3 0 h 0 6 2 9 2 p 5 6 h 4 n 2 8 2 0 3 6 1n 1b 2 1 d 6 1n 1 2 0 2 4 2 ' +
  'n 2 0 2 9 2 1 a 0 3 4 2 0 m 3 x 0 1s 7 2 z s 4 38 16 l 0 h 5 5 3 4 0 4 1 8 2 5 c d 0 i 11 2 0 6 0 3 ' +
  '16 2 98 2 3 3 6 2 0 2 3 3 14 2 3 3 w 2 3 3 6 2 0 2 3 3 e 2 1k 2 3 3 1u 12 f h 2d 3 5 4 h7 3 g 2 p 6 ' +
  '22 7 7 8 h e i f h f c 2 2 g 1f 10 0 5 0 1w 2g 8 4 3 x 2 0 6 1x b u 1e t 3 4 c 17 5 p 1j m a 1g 2b 0 ' +
  '2m 1a i 7 1j t e 1 b 17 r z 16 2 b z 3 8 8 16 3 2 16 3 2 5 2 1 4 0 6 5b 1t 7p 3 5 3 11 3 5 3 7 2 0 2 ' +
  '0 2 0 2 u 3 1g 2 6 2 0 4 2 2 6 4 3 3 5 5 c 6 2 2 6 39 0 e 0 h c 2u 0 5 0 3 9 2 0 4 4 7 0 2 0 2 0 2 3 ' +
  '2 a 3 3 6 4 5 0 1h 1 22k 6c 7 3 4 1 d 11 2 0 6 0 3 1j 8 0 h m a 6 2 6 2 6 2 6 2 6 2 6 2 6 2 6 29 0 d2 ' +
  '1 17 4 6 1 5 2d 7 2 2 2h 2 3 6 16 2 2l i v 1d f e9 533 1t h3g 1w 19 3 7g 4 f b 1 l 1a h u 3 1x 1e 8 ' +
  '3 2u 3 1r 6 1 2 0 2 4 p f 2 2 2 3 2 m u 1f f 1d 1r 5 4 0 2 1 c r b m q s 8 1a t 0 h 4 2 9 b 4 2 14 o ' +
  '2 2 7 l m 4 0 4 1d 2 0 4 1 3 4 3 0 2 0 p 2 3 a 8 2 d 5 3 5 3 5 a 6 2 6 2 16 2 d 7 36 u 8mb d m 5 1c ' +
  '6it a5 3 2x 13 6 d 4 6 0 2 9 2 c 2 4 2 0 2 1 2 1 2 2z y a2 j 1r 3 1h 15 b 39 4 2 3q 11 p 7 p c 2g 4 ' +
  '5 3 5 3 5 3 2 10 b 2 p 2 i 2 1 2 e 3 d z 3e au s 4 1c 1c v e j 2 7 7 11 b t 3 z 5 7 1d 4d j z 5 z 5 ' +
  '13 9 1f d a 2 e 2 6 2 1 2 a 2 e 2 6 2 1 1w 8m a l b 7 p 5 2 15 2 8 1y 5 3 0 2 17 2 1 4 0 3 m b m a u ' +
  '1u i 2 1 b l b p 1z 1j 7 1 1t 0 g 3 2 2 2 s 17 s 4 s 10 7 2 r s 1h b l b i e h 33 20 1k 1e e 1e e z ' +
  '9p 15 7 1 27 s b 0 9 l 17 h 1b k s m d 1g 1m 1 3 0 e 18 x o r z u 0 3 0 9 y 4 0 d 1b f 3 m 0 2 0 10 ' +
  'h 2 o k 1 1s 6 2 0 2 3 2 e 2 9 8 1a 13 7 3 1 3 l 2 6 2 1 2 4 4 0 j 0 d 4 4f 1g j 3 l 2 v 1b l 1 2 0 ' +
  '55 1a 16 3 11 1b l 0 1o 16 e 0 20 q 12 6 56 17 39 1r w 7 3 0 3 7 2 1 2 n g 0 2 0 2n 7 3 12 h 0 2 0 t ' +
  '0 b 13 8 0 m 0 c 19 k 0 j 20 7c 8 2 10 i 0 1e t 35 6 2 1 2 11 m 0 q 5 2 1 2 v f 0 94 i g 0 2 c 2 x 3h ' +
  '0 28 pl 6f 5f 219 2o g tr i 5 33u g6 6nu fs 8 u i 26 i t j 1b h 3 w k 6 i j5 1r 3l 22 6 0 1v c 1t 1 ' +
  '2 0 t 4qf 9 yd 17 8 6w8 3 2 6 2 1 2 82 g 0 u 2 3 0 f 3 9 az 1s5 2y 6 c 4 8 8 9 4mf 2c 2 1y 2 1 3 0 3 ' +
  '1 3 3 2 b 2 0 2 6 2 1s 2 3 3 7 2 6 2 r 2 3 2 4 2 0 4 6 2 9f 3 o 2 o 2 u 2 o 2 u 2 o 2 u 2 o 2 u 2 o ' +
  '2 7 1f9 u 7 5 7a 1p 43 18 b 6 h 0 8y t j 17 dh r l1 6 2 3 2 1 2 e 2 5g 1o 1v 8 0 xh 3 2 q 2 1 2 0 3 ' +
  '0 2 9 2 3 2 0 2 0 7 0 5 0 2 0 2 0 2 2 2 1 2 0 3 0 2 0 2 0 2 0 2 0 2 1 2 0 3 3 2 6 2 3 2 3 2 0 2 9 2 ' +
  'g 6 2 2 4 2 g 3et wyn x 37d 7 65 3 4g1 f 5rk 2e8 f1 15v 3t6 6 38f';

/** Distances of the ranges of digits. */
export const DIGITS =
  '19c 9 3r 9 5j 9 bh 9 3b 9 3b 9 3b 9 3b 9 3b 9 3b 9 3b 9 3b 9 3b 9 2p 9 3b 9 1z 9 7r 9 1z 9 1fr 9 13 ' +
  '9 8d 9 3l 9 4n 9 7 9 53 9 2f 9 3r 9 7 9 r7r 9 iv 9 13 9 5j 9 n 9 2f 9 bb 9 gev 9 13b 9 1on 9 ml 9 3l ' +
  '9 1p 9 41 9 7r 9 9j 9 3b 9 af 9 2v 9 2v 9 br 9 2v 9 l3 9 6v 9 1z 9 br 9 etj 9 2f 9 3r 9 lf9 1d 1tt 9 ' +
  'br 9 dz 9 uv 9 3o7 9';

/** Distances of the ranges of characters that Go prints as they are. */
export const PRINTABLE =
  '4h b 2 jt 3 5 5 6 2 0 2 j 2 b0 2 11 3 1d 3 2 2 1i 9 q 5 5 i l 2 5b 2 1b 3 1m 3 2s f 1m 3 1c 3 e 2 r ' +
  '3 0 2 a 6 u a 21 2 4g 2 7 3 1 3 l 2 6 2 0 4 3 3 8 3 1 3 3 9 0 5 1 2 4 3 o 3 2 2 5 5 1 3 l 2 6 2 1 2 ' +
  '1 2 1 3 0 2 4 5 1 3 2 4 0 8 3 2 0 8 g b 2 2 8 2 2 2 l 2 6 2 1 2 4 3 9 2 2 2 2 3 0 g 3 3 b 8 6 2 2 2 ' +
  '7 3 1 3 l 2 6 2 1 2 4 3 8 3 1 3 2 8 2 5 1 2 4 3 h b 1 2 5 4 2 2 3 4 1 2 0 2 1 4 1 4 2 4 b 5 4 4 2 2 ' +
  '3 3 0 7 0 f k 6 c 2 2 2 m 2 f 3 8 2 2 2 3 8 1 2 2 3 0 3 3 3 9 8 l 2 2 2 m 2 9 2 4 3 8 2 2 2 3 8 1 7 ' +
  '1 2 3 3 9 2 2 d c 2 2 2 1e 2 2 2 5 5 f 3 p 2 2 2 h 4 n 2 8 2 0 3 6 4 0 5 5 2 0 2 7 7 9 3 2 d 1l 5 s ' +
  '12 1 2 0 2 4 2 n 2 0 2 m 3 4 2 0 2 6 2 9 3 3 x 1z 2 z 5 12 2 z 2 e 2 c 12 5h 2 0 6 0 3 ag 2 3 3 6 2 ' +
  '0 2 3 3 14 2 3 3 w 2 3 3 6 2 0 2 3 3 e 2 1k 2 3 3 1u 3 v 4 p 7 2d 3 5 3 hr 2 r 4 2g 8 l a n a j d c ' +
  '2 2 2 1 d 2l 3 9 7 9 7 d 2 a 7 2g 8 16 6 1x b u 2 b 5 b 5 0 4 15 3 4 c 17 5 p 7 a 4 1p 3 1s 2 s 3 a ' +
  '7 9 7 d 3 u 1e 24 4 1a 2 37 9 1n 4 e 4 1n 8 16 3 a 9 16 6 et 3 5 3 11 3 5 3 7 2 0 2 0 2 0 2 u 3 1g 2 ' +
  'e 2 d 3 5 2 i 3 2 2 8 i n 9 1a i 1 3 q 2 c 4 w g w g 3v 5 ie q a m 1eb 3 v 2 9o 6 18 2 0 6 0 3 1j 8 ' +
  '1 f n a 6 2 6 2 6 2 6 2 6 2 6 2 6 2 6 2 3h z p 2 2g d 5x r b 6 1q 2 2d 3 2u 6 16 2 2l 2 2b d 1a 2 mlo ' +
  '4 1i a 9n l 53 9 5m 6 1 2 0 2 4 p 1m 4 9 7 1j 9 1x 9 b 7 37 c t 4 25 2 a 5 w 2 1i a d 3 9 3 2u p r b ' +
  '5 3 5 3 5 a 6 2 6 2 1n 5 3h 3 9 7 8mb d m 5 1c 6it a5 3 2x 13 6 d 4 6 p 2 4 2 0 2 1 2 1 2 3g h cc 3 ' +
  '1h 8 0 x 15 7 1e 2 i 2 3 5 4 2 3q 5 59 4 5 3 5 3 5 3 2 4 6 2 6 e 1 3 b 2 p 2 i 2 1 2 e 3 d z 3e 6 2 ' +
  '5 18 4 2f 2 c 4 0 1c 19 3n s 4 1c g r 5 z a t 6 16 6 t 2 10 5 d 17 4d 3 9 7 z 5 z 5 13 9 1f c b 2 e ' +
  '2 6 2 1 2 a 2 e 2 6 2 1 1w 8m a l b 7 p 5 2 15 2 8 1y 5 3 0 2 17 2 1 4 0 3 m 2 1z 9 8 1d i 2 1 6 w 4 ' +
  'q 6 0 1t 1j 5 j 3 1d 2 1 6 7 2 2 2 s 3 2 5 9 8 8 8 1r x 12 5 b a 1h 4 s 3 q 6 p 8 3 d 6 29 20 1k 1e ' +
  'e 1e 8 19 9 9 87 u 2 15 2 2 3 1 24 16 9 15 n p 13 r l m a 25 5 z a 1p 2 4 e o 8 9 7 1g 2 h 9 12 a 2n ' +
  '2 j c h 2 1a 1r 6 2 0 2 3 2 e 2 a 7 1m 6 9 7 3 2 7 3 1 3 l 2 6 2 1 2 4 2 9 3 1 3 2 3 0 7 0 6 6 3 6 4 ' +
  '4 3w 2j 2 4 v 1z 9 9 4n 1h 3 11 z 1w c 9 7 c k 1l 7 9 1j q 3 e 5 m 56 1n 2t 2a d 7 3 0 3 7 2 1 2 t 2 ' +
  '1 3 b a 9 1z 7 3 19 3 a s 1z 9 2a e 20 8 9 6v 8 2 18 2 d b s 4 v 3 l 2 d 22 6 2 1 2 17 4 0 2 1 2 8 9 ' +
  '9 7 5 2 1 2 10 2 1 2 5 8 9 8n o 8 g 2 14 4 r 2f 0 g 1d e pm 2v 32 2 4 c 5f 219 2q e tr h l 33f g6 6nu ' +
  'fs 8 u 2 9 5 28 2 9 7 t 3 5 b 1x b 9 2 6 2 k 6 i j5 2i 2u 22 5 1k 8 g 1t 4 c 1 f 4qf 9 yd 17 8 6w8 3 ' +
  '2 6 2 1 2 82 g 0 u 2 3 0 f 3 9 az 1s5 2y 6 c 4 8 8 9 3 3 3mp 19 3 m a 37 1p 6t b 12 3 21 9 33 m 1x 3f ' +
  'j d j d 2e a o 3s 2c 2 1y 2 1 3 0 3 1 3 3 2 b 2 0 2 6 2 1s 2 3 3 7 2 6 2 r 2 3 2 4 2 0 4 6 2 9f 3 83 ' +
  '3 jh g 4 2 e up u 7 5 5y 6 2 g 3 6 2 1 2 4 6 1p y 0 35 18 4 d 3 9 5 1 8x u i 1l 6 0 cx 15 kn 6 2 3 2 ' +
  '1 2 e 2 5g 3 f 16 23 5 9 5 1 lu 1v 25 1o 5f 3 2 q 2 1 2 0 3 0 2 9 2 3 2 0 2 0 7 0 5 0 2 0 2 0 2 2 2 ' +
  '1 2 0 3 0 2 0 2 0 2 0 2 0 2 1 2 0 3 3 2 6 2 3 2 3 2 0 2 9 2 g 6 2 2 4 2 g 1h 1 7j 17 5 2r d e 3 e 2 ' +
  'e 2 10 b 4t 1l s e 17 5 8 8 1 f 5 4b rb 5 g 4 c 4 3a 5 2m 7 b 5 0 g b 5 1j 9 9 7 13 9 t 3 1 27 9f d ' +
  'd 3 c 4 8 8 19 2 6 9 d 5 8 8 8 8 42 2 1i 12 9 sn wyn x 37d 7 65 3 4g1 f 5rk 2e8 f1 15v 3t6 6 38f f9e9 ' +
  '6n';

/** First code, length, and distances to the upper and lower case. */
export const CASES =
  '1t,p,0,w 2p,p,-w,0 51,0,kn,0 5c,m,0,w 60,6,0,w 68,m,-w,0 6w,6,-w,0 73,0,3d,0 74,1b 8g,0,0,-5j 8h,0,-6g,0 ' +
  '8i,5 8p,f 96,19 ag,0,0,-3d ah,5 an,0,-8c,0 ao,0,5f,0 ap,0,0,5u aq,3 au,0,0,5q av,1 ax,1,0,5p az,1 b2,0,0,27 ' +
  'b3,0,0,5m b4,0,0,5n b5,1 b7,0,0,5p b8,0,0,5r b9,0,2p,0 ba,0,0,5v bb,0,0,5t bc,1 be,0,4j,0 bg,0,0,5v ' +
  'bh,0,0,5x bi,0,3m,0 bj,0,0,5y bk,5 bq,0,0,62 br,1 bt,0,0,62 bw,1 by,0,0,62 bz,1 c1,1,0,61 c3,3 c7,0,0,63 ' +
  'c8,1 cc,1 cf,0,1k,0 ck,0,0,2 cl,0,-1,1 cm,0,-2,0 cn,0,0,2 co,0,-1,1 cp,0,-2,0 cq,0,0,2 cr,0,-1,1 cs,0,-2,0 ' +
  'ct,f d9,0,-27,0 da,h dt,0,0,2 du,0,-1,1 dv,0,-2,0 dw,1 dy,0,0,-2p dz,0,0,-1k e0,13 f4,0,0,-3m f6,h fu,0,0,8bv ' +
  'fv,1 fx,0,0,-4j fy,0,0,8bs fz,1,8cf,0 g1,1 g3,0,0,-5f g4,0,0,1x g5,0,0,1z g6,9 gg,0,8bj,0 gh,0,8bg,0 ' +
  'gi,0,8bi,0 gj,0,-5u,0 gk,0,-5q,0 gm,1,-5p,0 gp,0,-5m,0 gr,0,-5n,0 gs,0,wnj,0 gw,0,-5p,0 gx,0,wnf,0 gz,0,-5r,0 ' +
  'h1,0,wmg,0 h2,0,wn8,0 h4,0,-5t,0 h5,0,-5v,0 h6,0,wn8,0 h7,0,8af,0 h8,0,wn5,0 hb,0,-5v,0 hd,0,8al,0 he,0,-5x,0 ' +
  'hh,0,-5y,0 hp,0,89z,0 hs,0,-62,0 hu,0,wn7,0 hv,0,-62,0 hz,0,wmi,0 i0,0,-62,0 i1,0,-1x,0 i2,1,-61,0 i4,0,-1z,0 ' +
  'ia,0,-63,0 il,0,wlx,0 im,0,wlu,0 n9,0,2c,0 og,3 om,1 or,2,3m,0 ov,0,0,38 p2,0,0,12 p4,2,0,11 p8,0,0,1s ' +
  'pa,1,0,1r pd,g,0,w pv,8,0,w q4,0,-12,0 q5,2,-11,0 q9,g,-w,0 qq,0,-v,0 qr,8,-w,0 r0,0,-1s,0 r1,1,-1r,0 ' +
  'r3,0,0,8 r4,0,-1q,0 r5,0,-1l,0 r9,0,-1b,0 ra,0,-1i,0 rb,0,-8,0 rc,n s0,0,-2e,0 s1,0,-28,0 s2,0,7,0 s3,0,-38,0 ' +
  's4,0,0,-1o s5,0,-2o,0 s7,1 s9,0,0,-7 sa,1 sd,2,0,-3m sg,f,0,28 sw,v,0,w ts,v,-w,0 uo,f,-28,0 v4,x wa,1h ' +
  'xs,0,0,f xt,d y7,0,-f,0 y8,2n 10x,11,0,1c 129,11,-1c,0 3a8,11,0,5ls 3bb,0,0,5ls 3bh,0,0,5ls 3bk,16,2bk,0 ' +
  '3ct,2,2bk,0 3vk,27,0,tzk 3xs,5,0,8 3y0,5,-8,0 5mo,0,-4tq,0 5mp,0,-4tp,0 5mq,0,-4tg,0 5mr,1,-4te,0 5mt,0,-4tf,0 ' +
  '5mu,0,-4t8,0 5mv,0,-4rp,0 5mw,0,r7m,0 5n4,16,0,-2bk 5od,2,0,-2bk 5tl,0,r9g,0 5tp,0,2xy,0 5u6,0,raw,0 ' +
  '5xc,45 61n,0,-1n,0 61q,0,0,-5vj 61s,2n 64g,7,8,0 64o,7,0,-8 64w,5,8,0 654,5,0,-8 65c,7,8,0 65k,7,0,-8 ' +
  '65s,7,8,0 660,7,0,-8 668,5,8,0 66g,5,0,-8 66p,0,8,0 66r,0,8,0 66t,0,8,0 66v,0,8,0 66x,0,0,-8 66z,0,0,-8 ' +
  '671,0,0,-8 673,0,0,-8 674,7,8,0 67c,7,0,-8 67k,1,22,0 67m,3,2e,0 67q,1,2s,0 67s,1,3k,0 67u,1,34,0 67w,1,3i,0 ' +
  '680,7,8,0 688,7,0,-8 68g,7,8,0 68o,7,0,-8 68w,7,8,0 694,7,0,-8 69c,1,8,0 69f,0,9,0 69k,1,0,-8 69m,1,0,-22 ' +
  '69o,0,0,-9 69q,0,-5k5,0 69v,0,9,0 6a0,3,0,-2e 6a4,0,0,-9 6a8,1,8,0 6ag,1,0,-8 6ai,1,0,-2s 6ao,1,8,0 ' +
  '6at,0,7,0 6aw,1,0,-8 6ay,1,0,-34 6b0,0,0,-7 6b7,0,9,0 6bc,1,0,-3k 6be,1,0,-3i 6bg,0,0,-9 6jq,0,0,-5st ' +
  '6ju,0,0,-6gv 6jv,0,0,-6di 6k2,0,0,s 6ku,0,-s,0 6lc,f,0,g 6ls,f,-g,0 6mb,1 792,p,0,q 79s,p,-q,0 8ow,1b,0,1c ' +
  '8q8,1b,-1c,0 8rk,1 8rm,0,0,-8af 8rn,0,0,-2xy 8ro,0,0,-89z 8rp,0,-8bv,0 8rq,0,-8bs,0 8rr,5 8rx,0,0,-8bg ' +
  '8ry,0,0,-8al 8rz,0,0,-8bj 8s0,0,0,-8bi 8s2,1 8s5,1 8se,1,0,-8cf 8sg,2r 8vf,3 8vm,1 8w0,11,-5ls,0 8x3,0,-5ls,0 ' +
  '8x9,0,-5ls,0 wu8,19 ww0,r x0i,d x0y,1p x2x,3 x31,0,0,-r9g x32,9 x3f,1 x3h,0,0,-wmg x3k,3 x3o,0,1c,0 ' +
  'x3q,j x4a,0,0,-wn8 x4b,0,0,-wnj x4c,0,0,-wnf x4d,0,0,-wn5 x4e,0,0,-wn8 x4g,0,0,-wlu x4h,0,0,-wmi x4i,0,0,-wlx ' +
  'x4j,0,0,ps x4k,f x50,0,0,-1c x51,0,0,-wn7 x52,0,0,-raw x53,3 x5c,1 x5i,3 x6d,1 xub,0,-ps,0 xv4,27,-tzk,0 ' +
  '1ee9,p,0,w 1ef5,p,-w,0 1fcw,13,0,14 1fe0,13,-14,0 1fhs,z,0,14 1fiw,z,-14,0 1fn4,a,0,13 1fng,e,0,13 1fnw,6,0,13 ' +
  '1fo4,1,0,13 1fo7,a,-13,0 1foj,e,-13,0 1foz,6,-13,0 1fp7,1,-13,0 1h1c,1e,0,1s 1h34,1e,-1s,0 1jfk,v,0,w ' +
  '1jgg,v,-w,0 20cg,v,0,w 20dc,v,-w,0 2olc,x,0,y 2oma,x,-y,0';
